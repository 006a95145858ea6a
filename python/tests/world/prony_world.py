"""Requests of a test client, sent over a socket to a prony-wsgi that serves in this process.

A test client calls an application with an environ of its own making. Here, the environ becomes a
request of HTTP, prony-wsgi makes an environ of it, and what the application answers comes back in
HTTP. What a request can carry (method, path, query, headers, body) is then prony-wsgi's word; what
it cannot (the scheme, the client's address, keys that only a test knows) is laid over that.

The application runs where the test client would have run it: on the thread that asks, with its
variables and its connections to databases. The server's thread hands it each call, and waits.
What is `live` instead is asked by any client, and runs on the server's threads.
"""

import itertools
import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import quote

from prony_wsgi import _prony_wsgi

Environ = dict[str, Any]
Start = Callable[..., Any]
Application = Callable[[Environ, Start], Iterable[bytes]]

# Seconds for whatever should come at once, on a machine that does other things, too.
PATIENCE = 60.0
# A client in a view asks the same server: as many may be under way at once.
THREADS = 8
KEY = "HTTP_PRONY_WORLD"
# Keys of an environ that a request brings, besides HTTP_*; a server's word on itself among them.
BROUGHT = {
    "REQUEST_METHOD",
    "SCRIPT_NAME",
    "PATH_INFO",
    "QUERY_STRING",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "wsgi.input",
    "wsgi.input_terminated",
    "wsgi.version",
    "wsgi.multithread",
    "wsgi.multiprocess",
    "wsgi.run_once",
    "wsgi.file_wrapper",
}
# What a server adds to an answer.
ADDED = {"connection", "content-length", "date", "server", "transfer-encoding"}
# Bytes that stand in a target as they are.
PATH_SAFE = "/:@!$&'()*+,;=~-._"
QUERY_SAFE = PATH_SAFE + '?%#[]{}|\\^`"<>'


class BrokenError(Exception):
    """The server did not do its part."""


class Answer:
    """An answer as it came, and the headers that the application gave."""

    def __init__(self, response: HTTPResponse, blocks: list[bytes]) -> None:
        self.status, self.reason = response.status, response.reason
        self.lines = response.getheaders()
        self.blocks = blocks

    def headers(self, given: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Its headers without those that the server has added to what was given."""
        names = {name.lower() for name, _ in given}
        return [
            (name, value)
            for name, value in self.lines
            if name.lower() not in ADDED or name.lower() in names
        ]


class Failed(Exception):  # noqa: N818
    """Stands for an exception of the application, which the test client gets itself."""


class Exchange:
    """One request: what the server's thread wants done by the thread that asks."""

    numbers = itertools.count()
    under_way: dict[str, "Exchange"] = {}  # noqa: RUF012
    answered = 0

    def __init__(self, application: Application, environ: Environ) -> None:
        self.application, self.environ = application, environ
        self.number = str(next(self.numbers))
        self.jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.raised: BaseException | None = None
        self.given: list[tuple[str, str]] = []
        self.has_to_close = False

    # On the thread that asks.

    def ask(self) -> Answer:
        """Sends the request, and does what the server wants done until all is over."""
        self.under_way[self.number] = self
        client = threading.Thread(target=self.send, daemon=True)
        client.start()
        answer: Answer | BaseException | None = None
        try:
            while answer is None or self.has_to_close:
                job = self.jobs.get(timeout=PATIENCE)
                if job[0] is None:
                    answer = job[1]
                else:
                    self.do(*job)
        except queue.Empty:
            raise BrokenError("the server neither answered nor closed the answer") from None
        finally:
            del self.under_way[self.number]
        client.join()
        if self.raised is not None:
            raise self.raised
        if isinstance(answer, BaseException):
            raise BrokenError(f"no whole answer came: {answer!r}") from answer
        Exchange.answered += 1
        return answer

    def do(self, function: Callable[..., Any], reply: queue.SimpleQueue[tuple[Any, ...]]) -> None:
        try:
            reply.put((True, function(reply)))
        except BaseException as error:
            if self.raised is None and not isinstance(error, StopIteration):
                self.raised = error
            reply.put((False, error))

    # On a thread of the server's.

    def have_done(self, function: Callable[..., Any]) -> Any:
        """Has the thread that asks call this; does meanwhile what that wants done here."""
        reply: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.jobs.put((function, reply))
        while True:
            is_good, value = reply.get()
            if is_good is None:
                value()
            elif is_good:
                return value
            elif isinstance(value, StopIteration):
                raise value
            else:
                raise Failed(repr(value))

    def run(self, environ: Environ, start_response: Start) -> Iterable[bytes]:
        """The application, as the server calls it."""
        merged = self.merged(environ)

        def call(reply: queue.SimpleQueue[tuple[Any, ...]]) -> Iterable[bytes]:
            return self.application(merged, self.start(start_response, reply))

        returned = self.have_done(call)
        if isinstance(returned, list | tuple | _prony_wsgi.FileWrapper):
            return returned
        self.has_to_close = hasattr(returned, "close")
        kind = ClosedBlocks if self.has_to_close else Blocks
        return kind(self, returned)

    def start(self, real: Start, reply: queue.SimpleQueue[tuple[Any, ...]]) -> Start:
        """A `start_response` that has the server's called by the server's thread."""

        def there(function: Callable[[], Any]) -> Any:
            done: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

            def act() -> None:
                try:
                    done.put((True, function()))
                except BaseException as error:
                    done.put((False, error))

            reply.put((None, act))
            is_good, value = done.get()
            if not is_good:
                raise value
            return value

        def start_response(status: str, headers: Any, *exc_info: Any) -> Callable[[bytes], Any]:
            write = there(lambda: real(status, headers, *exc_info))
            self.given = list(headers)
            return lambda data: there(lambda: write(data))

        return start_response

    def merged(self, environ: Environ) -> Environ:
        """The server's environ, with what no request can bring laid over it."""
        environ = dict(environ)
        del environ[KEY]
        script = str(self.environ.get("SCRIPT_NAME", ""))
        asked = script + str(self.environ.get("PATH_INFO", ""))
        path = environ["PATH_INFO"]
        if not asked.startswith("/"):
            path = path[1:]
        if path[: len(script)] != script:
            raise BrokenError(f"{asked!r} was asked for, and {path!r} is what came")
        environ.update(SCRIPT_NAME=script, PATH_INFO=path[len(script) :])
        if "HTTP_HOST" not in self.environ:
            del environ["HTTP_HOST"]
        for key, value in self.environ.items():
            if key not in BROUGHT and not key.startswith("HTTP_"):
                environ[key] = value
        return environ

    # On a thread of its own.

    def send(self) -> None:
        answer: Answer | BaseException
        try:
            request = request_of(self.environ, self.number)
            with socket.create_connection(("127.0.0.1", port()), PATIENCE) as connection:
                connection.sendall(request)
                response = HTTPResponse(connection, method=self.environ["REQUEST_METHOD"])
                response.begin()
                with response:
                    answer = Answer(response, list(blocks_of(response)))
        except BaseException as error:
            answer = error
        self.jobs.put((None, answer))


class Blocks:
    """An application's iterable, whose every step is done by the thread that asks."""

    def __init__(self, exchange: Exchange, iterable: Iterable[bytes]) -> None:
        self.exchange, self.iterable = exchange, iterable

    def __iter__(self) -> Iterator[bytes]:
        iterator = self.exchange.have_done(lambda _: iter(self.iterable))
        return _Steps(self.exchange, iterator)


class ClosedBlocks(Blocks):
    """One that has to be closed."""

    def close(self) -> None:
        close: Any = self.iterable

        def last(_: object) -> None:
            self.exchange.has_to_close = False
            close.close()

        self.exchange.have_done(last)


class _Steps:
    def __init__(self, exchange: Exchange, iterator: Iterator[bytes]) -> None:
        self.exchange, self.iterator = exchange, iterator

    def __iter__(self) -> "_Steps":
        return self

    def __next__(self) -> bytes:
        # A StopIteration that is thrown in a called function is no end, and an end no error.
        found = self.exchange.have_done(lambda _: next(self.iterator, None))
        if found is None:
            raise StopIteration
        block: bytes = found
        return block


def blocks_of(response: HTTPResponse) -> Iterator[bytes]:
    while block := response.read1(65536) if response.length is None else response.read():
        yield block
    if response.length:
        raise IncompleteRead(b"", response.length)


def request_of(environ: Environ, number: str) -> bytes:
    """The request that these keys stand for."""
    path = str(environ.get("SCRIPT_NAME", "")) + str(environ.get("PATH_INFO", ""))
    target = quote(path.encode("latin-1"), safe=PATH_SAFE)
    if not target.startswith("/"):
        target = "/" + target
    if query := str(environ.get("QUERY_STRING", "")):
        target += "?" + quote(encoded(query), safe=QUERY_SAFE)
    version = "HTTP/1.0" if environ.get("SERVER_PROTOCOL") == "HTTP/1.0" else "HTTP/1.1"
    lines = [f"{environ['REQUEST_METHOD']} {target} {version}".encode()]
    lines += [name + b": " + value for name, value in headers_of(environ)]
    lines.append(b"Prony-World: " + number.encode())
    lines.append(b"Connection: close")
    body = body_of(environ)
    if environ.get("HTTP_TRANSFER_ENCODING") == "chunked":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    elif body or str(environ.get("CONTENT_LENGTH") or ""):
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body])


def body_of(environ: Environ) -> bytes:
    """As much as the length says; all of a body that comes in chunks."""
    source = environ.get("wsgi.input")
    if source is None or source.closed:
        return b""
    if environ.get("HTTP_TRANSFER_ENCODING") == "chunked":
        length = -1
    else:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    # A client that follows a redirect sends it once more.
    place = source.tell() if source.seekable() else None
    body = bytes(source.read(length)) if length else b""
    if place is not None:
        source.seek(place)
    return body


def headers_of(environ: Environ) -> Iterator[tuple[bytes, bytes]]:
    if "HTTP_HOST" not in environ:
        yield b"Host", encoded(environ.get("SERVER_NAME", "test"))
    if content := environ.get("CONTENT_TYPE"):
        yield b"Content-Type", encoded(content)
    for key, value in environ.items():
        name = key.removeprefix("HTTP_")
        is_none = value is None or (name == "COOKIE" and not value)
        if name != key and name not in ("CONTENT_LENGTH", "CONNECTION") and not is_none:
            yield name.replace("_", "-").title().encode(), encoded(value)


def encoded(value: object) -> bytes:
    try:
        return str(value).encode("latin-1")
    except UnicodeEncodeError:
        return str(value).encode()


# Applications that are asked by other clients; the last is served, on threads of the server's.
live: list[Application] = []


def application(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """What prony-wsgi serves: the application of whoever asked."""
    if (number := environ.get(KEY)) is not None:
        return Exchange.under_way[number].run(environ, start_response)
    Exchange.answered += 1
    return live[-1](environ, start_response)


_port: list[int] = []
_starting = threading.Lock()


def port() -> int:
    """The server's, which runs from the first call on. After a fork, another."""
    with _starting:
        if not _port:
            _port.append(start())
        return _port[0]


os.register_at_fork(after_in_child=_port.clear)


def start() -> int:
    """Starts the server on a thread of this process, which ends with it."""
    reader, writer = os.pipe()
    words = ["prony-wsgi", "prony_world:application", "0", "--workers", "0"]
    words += ["--threads", str(THREADS), "--path", str(Path(__file__).parent)]
    output = os.dup(1)
    # It prints its address, and that has to be read.
    os.dup2(writer, 1)
    try:
        threading.Thread(target=_prony_wsgi.main, args=(words, []), daemon=True).start()
        if not select.select([reader], [], [], PATIENCE)[0]:
            raise BrokenError("the server never said where it listens")
        said = os.read(reader, 4096).decode()
    finally:
        os.dup2(output, 1)
        for descriptor in (output, reader, writer):
            os.close(descriptor)
    return int(said.split()[2].rpartition(":")[2])
