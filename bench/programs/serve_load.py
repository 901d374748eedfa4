"""A client that keeps a server busy: so many connections, requests sent in batches, answers counted.

Usage: serve_load.py redis|memcached|nginx SOCKET ROUNDS
"""

import random
import socket
import sys

BATCH = 50
KEYS = 4000


def value(source):
    """Mostly small, seldom large."""
    return b"v" * int(min(20000, 10 + source.expovariate(1 / 300)))


def redis(source):
    key = f"key:{source.randrange(KEYS)}".encode()
    return source.choices([
        lambda: [b"SET", key, value(source)],
        lambda: [b"GET", key],
        lambda: [b"DEL", key],
        lambda: [b"HSET", b"h" + key, f"field{source.randrange(30)}".encode(), value(source)],
        lambda: [b"LPUSH", b"l" + key, value(source)],
        lambda: [b"RPOP", b"l" + key],
        lambda: [b"ZADD", b"z" + key, str(source.randrange(999)).encode(), str(source.getrandbits(40)).encode()],
        lambda: [b"ZREMRANGEBYRANK", b"z" + key, b"0", b"-20"],
    ], [30, 30, 8, 10, 8, 6, 6, 2])[0]()  # fmt: skip


def redis_batch(source):
    parts = []
    for _ in range(BATCH):
        words = redis(source)
        parts.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
    return b"".join(parts) + b"*2\r\n$4\r\nECHO\r\n$6\r\n<done>\r\n", b"<done>\r\n"


def memcached_batch(source):
    parts = []
    for _ in range(BATCH):
        key = b"key:%d" % source.randrange(KEYS * 4)
        kind = source.random()
        if kind < 0.5:
            parts.append(b"get %s\r\n" % key)
        elif kind < 0.9:
            what = value(source)
            parts.append(b"set %s 0 %d %d\r\n%s\r\n" % (key, source.choice([0, 1, 600]), len(what), what))
        else:
            parts.append(b"delete %s\r\n" % key)
    return b"".join(parts) + b"verbosity\r\n", b"ERROR\r\n"


def nginx_batch(source):
    pages = [b"/page.shtml?n=%d" % source.randrange(99), b"/list/", b"/file%d.txt" % source.randrange(20), b"/none"]
    heads = b"Host: load\r\nAccept-Encoding: gzip\r\nCookie: id=%s\r\n" % (b"c" * source.randrange(20, 900))
    parts = [b"GET %s HTTP/1.1\r\n%s\r\n" % (source.choice(pages), heads) for _ in range(8)]
    return b"".join(parts) + b"GET /end HTTP/1.1\r\nHost: load\r\nConnection: close\r\n\r\n", None


def converse(connection, text, end):
    """Sends a batch; the answer ends with `end`, or when the server closes (None)."""
    connection.sendall(text)
    tail = b""
    while end is None or not tail.endswith(end):
        got = connection.recv(1 << 20)
        if not got:
            if end is None:
                return
            sys.exit("the server closed the connection")
        tail = (tail + got)[-64:]


def connect(place):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    return connection


def main():
    kind, place, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    make = {"redis": redis_batch, "memcached": memcached_batch, "nginx": nginx_batch}[kind]
    source = random.Random(43)
    batches = [make(source) for _ in range(200)]
    connections = [connect(place) for _ in range(20)] if kind != "nginx" else []
    for number in range(rounds):
        text, end = batches[number % len(batches)]
        if connections:
            converse(connections[number % len(connections)], text, end)
        else:
            with connect(place) as connection:
                converse(connection, text, end)


main()
