"""Writes nginx.conf and the pages it serves, in the present folder."""

import os
import random

CONF = """daemon off;
worker_processes 2;
pid nginx.pid;
error_log nginx.log crit;
%s
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp; uwsgi_temp_path temp; scgi_temp_path temp;
  types { text/html html shtml; text/plain txt; }
  gzip on; gzip_comp_level 1; gzip_min_length 200; gzip_types *;
  server {
    listen unix:nginx.socket;
    root site;
    ssi on;
    location /list/ { autoindex on; }
    location /none { return 404; }
    location /end { return 200 "end"; }
  }
}
"""


def write(name, text):
    with open(name, "w", encoding="ascii") as file:
        file.write(text)


def main():
    source = random.Random(47)
    os.makedirs("site/list", exist_ok=True)
    os.makedirs("temp", exist_ok=True)
    os.makedirs("logs", exist_ok=True)
    write("nginx.conf", CONF % ("user root;" if os.getuid() == 0 else ""))
    for number in range(200):
        write(f"site/list/entry-{number}-{source.getrandbits(40):x}.txt", "x" * source.randrange(2000))
    for number in range(20):
        write(f"site/file{number}.txt", " ".join(f"{source.getrandbits(30):x}" for _ in range(source.randrange(20, 900))))
    parts = [f'<p><!--#include virtual="/file{number % 20}.txt" --> <!--#echo var="QUERY_STRING" --></p>' for number in range(12)]
    write("site/page.shtml", "<html>\n" + "\n".join(parts) + "\n</html>\n")


main()
