"""Runs Django's own tests with its test client routed through a live prony-wsgi.

    python django_world.py TESTS LABEL …      TESTS: the folder `tests` of its source

The test client gets the response object that the application made, as ever, but with the status,
the headers and the body that came over the wire. What a `LiveServerTestCase` starts is prony-wsgi,
too: one for all of them.
"""

import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import prony_world
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import request_finished
from django.db import close_old_connections, connections
from django.http import HttpResponse
from django.http.response import ResponseHeaders
from django.test import client, testcases

handle = client.ClientHandler.__call__
remove_content = client.conditional_content_removal
# For each request under way: the files that its response would have the server send.
files: list[list[Any]] = []


def keep_body(request: Any, response: Any) -> Any:
    """Stands for what plays the server: that one is to leave bodies out itself."""
    if not files:
        return remove_content(request, response)
    if (file := getattr(response, "file_to_stream", None)) is not None:
        files[-1].append(file)
    return response


class Body:
    """A response as the iterable that a server gets."""

    def __init__(self, response: Any) -> None:
        self.response = response

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.response)

    def close(self) -> None:
        # Of one that streams: what closes it when it is closed itself.
        blocks: Any = getattr(self.response, "_iterator", None)
        if hasattr(blocks, "close"):
            blocks.close()


def closed(response: Any) -> Callable[[], None]:
    """Closes a response as the test client does: connections to databases are left open."""

    def close() -> None:
        request_finished.disconnect(close_old_connections)
        response.close()
        request_finished.connect(close_old_connections)

    return close


def call(handler: client.ClientHandler, environ: prony_world.Environ) -> Any:
    """Stands for `ClientHandler.__call__`."""
    made: list[Any] = []

    def application(environ: prony_world.Environ, start: prony_world.Start) -> Iterable[bytes]:
        files.append([])
        try:
            response = handle(handler, environ)
        finally:
            found = files.pop()
        made.append(response)
        start(f"{response.status_code} {response.reason_phrase}", headers_of(response))
        for file in found:
            file.close = closed(response)
            wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](file, response.block_size)
            return wrapped
        return Body(response)

    exchange = prony_world.Exchange(application, environ)
    answer = exchange.ask()
    if not made:
        # The server's own: such a request reaches no application.
        refused = HttpResponse(b"".join(answer.blocks), status=answer.status)
        vars(refused)["wsgi_request"] = WSGIRequest(environ)
        return refused
    (response,) = made
    put(response, answer, exchange)
    return response


def headers_of(response: Any) -> list[tuple[str, str]]:
    cookies = [("Set-Cookie", morsel.output(header="")) for morsel in response.cookies.values()]
    return [*response.items(), *cookies]


def put(response: Any, answer: prony_world.Answer, exchange: prony_world.Exchange) -> None:
    """Gives a response what came over the wire."""
    lines = answer.headers(exchange.given)
    cookies = [value for name, value in lines if name == "Set-Cookie"]
    made = [value.strip() for name, value in headers_of(response) if name == "Set-Cookie"]
    if cookies != made:
        raise prony_world.BrokenError(f"the cookies {made} were set, and {cookies} came")
    response.headers = ResponseHeaders({})
    for name, value in lines:
        if name != "Set-Cookie":
            response.headers[name] = value
    response.status_code, response.reason_phrase = answer.status, answer.reason
    if response.streaming:
        response.streaming_content = answer.blocks
    else:
        response.content = b"".join(answer.blocks)


class LiveServer:
    """Stands for the server that `LiveServerTestCase` starts: the application runs on threads of
    prony-wsgi's, with the connections to databases that the test has."""

    def __init__(self, address: tuple[str, int], _: object, **options: Any) -> None:
        if address[1]:
            raise OSError("the port is the one that prony-wsgi has already")
        self.server_address = (address[0], prony_world.port())
        self.shared = options.get("connections_override") or {}
        self.stopped = threading.Event()

    def set_app(self, handler: prony_world.Application) -> None:
        def serve(environ: prony_world.Environ, start: prony_world.Start) -> Iterable[bytes]:
            for alias, connection in self.shared.items():
                connections[alias] = connection
            return handler(environ, start)

        self.served = serve
        prony_world.live.append(serve)

    def serve_forever(self) -> None:
        self.stopped.wait()

    def shutdown(self) -> None:
        self.stopped.set()

    def server_close(self) -> None:
        prony_world.live.remove(self.served)


def main(tests: str, labels: list[str]) -> None:
    """Runs the tests of these labels."""
    vars(client)["conditional_content_removal"] = keep_body
    client.ClientHandler.__call__ = call
    testcases.LiveServerThread.server_class = LiveServer
    prony_world.port()
    sys.path.insert(0, tests)
    os.chdir(tests)
    words = ["--settings=django_settings", "--parallel=1", "--noinput", "--verbosity=1"]
    sys.argv = ["runtests.py", *words, *labels]
    runpy.run_path(os.path.join(tests, "runtests.py"), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
