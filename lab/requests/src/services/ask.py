"""Sends a service a fixed number of requests: ask.py KIND PORT."""

import bisect
import http.client
import itertools
import random
import socket
import sys
import time

kind, port = sys.argv[1], int(sys.argv[2])
draw = random.Random(1)


def ready():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)


def zipf(count):
    sums = list(itertools.accumulate(1 / (rank + 1) ** 0.99 for rank in range(count)))
    order = list(range(count))
    draw.shuffle(order)
    while True:
        yield order[bisect.bisect(sums, draw.random() * sums[-1])]


def get(paths, pause=0.0):
    ready().close()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for path in paths:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (path, answer.status)
        if pause:
            time.sleep(pause)
            connection.close()


def memcached():
    stream = ready()
    answers = stream.makefile("rb")
    value = b"x" * 1000
    for first in range(0, 100_000, 100):
        stream.sendall(b"".join(b"set key%d 0 0 1000\r\n%s\r\n" % (key, value) for key in range(first, first + 100)))
        assert all(answers.readline() == b"STORED\r\n" for _ in range(100))
    keys = zipf(100_000)
    for _ in range(40_000):
        stream.sendall(b"get " + b" ".join(b"key%d" % key for key in itertools.islice(keys, 50)) + b"\r\n")
        while answers.readline() != b"END\r\n":
            pass


if kind == "memcached":
    memcached()
elif kind == "files":
    get(f"/{number}" for number in itertools.islice(zipf(4000), 80_000))
elif kind == "service":
    get(f"/{draw.randrange(10_000)}" for _ in range(60_000))
elif kind == "seldom":
    get(("/" for _ in range(320)), pause=0.25)
elif kind == "prometheus":
    get(("/api/v1/query?query=avg(rate(load%5B1h%5D))" for _ in range(320)), pause=0.25)
