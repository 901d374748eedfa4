"""pprof's format, read by hand: protocol buffers, in as much as profiles need."""
import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise AssertionError(f"wire type {key & 7}")
        yield key >> 3, value


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def pprof(path):
    with gzip.open(path) as file:
        data = file.read()
    parts = {}
    for field, value in fields(data):
        parts.setdefault(field, []).append(value)
    strings = [text.decode() for text in parts[6]]
    functions = {f[1]: strings[f[2]] for f in map(dict, map(fields, parts[5]))}
    locations = {}
    for location in parts[4]:
        found = {}
        for field, value in fields(location):
            found.setdefault(field, []).append(value)
        locations[found[1][0]] = [functions[dict(fields(line))[1]] for line in found[4]]
    types = [strings[dict(fields(value))[1]] for value in parts[1]]
    samples = []
    for sample in parts[2]:
        found = dict(fields(sample))
        names = [name for number in numbers(found[1]) for name in locations[number]]
        samples.append((names, dict(zip(types, numbers(found[2])))))
    return {"types": types, "samples": samples, "default": strings[parts[14][0]], "strings": strings}
