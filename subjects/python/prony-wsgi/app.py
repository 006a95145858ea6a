"""A WSGI application that answers three paths: `/`, `/hello`, and `/mixed`, where one request in a hundred is slow."""

import itertools
import os
import time

PAGES = {"/": b"hello world", "/hello": b"Hello, World!", "/mixed": b"hello world"}
SLOW_S = 0.1

_mixed = itertools.count(1)


def app(environ, start_response):
    path = environ["PATH_INFO"]
    body = PAGES.get(path)
    if body is None:
        return answer(environ, start_response, "404 Not Found", b"no such page\n")
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return answer(environ, start_response, "405 Method Not Allowed", b"GET or HEAD\n", ("Allow", "GET, HEAD"))
    if path == "/mixed":
        sometimes_slow()
    return answer(environ, start_response, "200 OK", body)


def answer(environ, start_response, status, body, *fields):
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *fields])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def sometimes_slow():
    """Blocks in every hundredth request of this process. Where it begins is drawn from the process id, so that workers,
    whose ids follow one another, are not slow at the same time."""
    if (next(_mixed) + 37 * os.getpid()) % 100 == 0:
        time.sleep(SLOW_S)
