"""Applications of every form that PEP 3333 allows, and some that it does not."""

import atexit
import contextvars
import ctypes
import gc
import io
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn
from wsgiref.validate import validator

Environ = dict[str, Any]
Start = Callable[..., Callable[[bytes], object]]
TEXT = [("Content-Type", "text/plain")]

# What happened, for those who ask later.
log: list[str] = []
request = contextvars.ContextVar("request", default="nobody")
local = threading.local()


def plain(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    return [b"hello world"]


def several(environ: Environ, start_response: Start) -> tuple[bytes, ...]:
    start_response("200 OK", TEXT)
    return (b"hello", b"", b" ", b"world")


def generator(environ: Environ, start_response: Start) -> Iterator[bytes]:
    # Called late, which is allowed until the first block.
    yield b""
    start_response("200 OK", TEXT)
    yield b"hello"
    yield b""
    yield b" world"


def announced(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", [*TEXT, ("Content-Length", "11")])
    yield b"hello"
    yield b" world"


class Instance:
    """An answer that is an object with all the methods there can be."""

    def __init__(self, environ: Environ, start_response: Start) -> None:
        self.start, self.left = start_response, [b"world", b"hello "]

    def __iter__(self) -> "Instance":
        self.start("200 OK", TEXT)
        return self

    def __next__(self) -> bytes:
        if not self.left:
            raise StopIteration
        return self.left.pop()

    def close(self) -> None:
        log.append("closed")


def writer(environ: Environ, start_response: Start) -> list[bytes]:
    write = start_response("200 OK", TEXT)
    write(b"hello")
    write(b" ")
    return [b"world"]


def empty(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    return []


def echo(environ: Environ, start_response: Start) -> list[bytes]:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", TEXT)
    return [body]


def reader(environ: Environ, start_response: Start) -> list[bytes]:
    """Reads its input in all ways."""
    source = environ["wsgi.input"]
    first = source.readline()
    two = source.read(2)
    rest = source.readline()
    lines = source.readlines(1)
    more = list(source)
    start_response("200 OK", TEXT)
    return [repr([first, two, rest, lines, more, source.read()]).encode()]


def real_input(environ: Environ, start_response: Start) -> list[bytes]:
    source = environ["wsgi.input"]
    start_response("200 OK", TEXT)
    assert isinstance(source, io.BytesIO)
    return [io.TextIOWrapper(source, "utf-8").read().upper().encode()]


def show(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Latin", "caf\xe9")])
    lines = [f"{key}={value!r}" for key, value in sorted(environ.items())]
    return ["\n".join(lines).encode()]


class Sized:
    """Blocks that are no list, and whose number is told."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = blocks

    def __len__(self) -> int:
        return len(self.blocks)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.blocks)


def sized_one(environ: Environ, start_response: Start) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return Sized(b"hello world")


def sized_two(environ: Environ, start_response: Start) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return Sized(b"hello ", b"world")


def reset_content(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("205 Reset Content", [*TEXT, ("Content-Length", "7")])
    return [b"content"]


def no_content(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("204 No Content", [])
    return [b"not to be seen"]


def not_modified(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("304 Not Modified", [("ETag", '"1"')])
    return []


def replaced(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", [("X-First", "1")])
    try:
        raise ValueError("replaces the head")
    except ValueError:
        start_response("503 Service Unavailable", TEXT, sys.exc_info())
    return [b"sorry"]


def too_late(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", TEXT)
    yield b"begun"
    try:
        raise ValueError("after the head")
    except ValueError:
        start_response("500 Sorry", TEXT, sys.exc_info())
    yield b"never"


def twice(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    start_response("200 OK", TEXT)
    return [b"never"]


def never_started(environ: Environ, start_response: Start) -> list[bytes]:
    return [b"never"]


def text(environ: Environ, start_response: Start) -> list[Any]:
    start_response("200 OK", TEXT)
    return ["not bytes"]


def nothing(environ: Environ, start_response: Start) -> None:
    start_response("200 OK", TEXT)


def fails(environ: Environ, start_response: Start) -> NoReturn:
    raise ZeroDivisionError("before the head")


def fails_later(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", TEXT)
    yield b"begun"
    raise ZeroDivisionError("after the head")


class FailsInClose(Instance):
    def close(self) -> None:
        raise ZeroDivisionError("in close")


def too_short(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", [*TEXT, ("Content-Length", "20")])
    yield b"hello"


def too_long(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", [*TEXT, ("Content-Length", "8")])
    yield b"hello"
    yield b" world"


def wrong_length(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", [*TEXT, ("Content-Length", "8")])
    return [b"hello world"]


def head_only(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", [*TEXT, ("Content-Length", "11")])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [b"hello world"]


HEADS: dict[str, tuple[Any, Any]] = {
    "connection": ("200 OK", [("Connection", "close")]),
    "transfer": ("200 OK", [("Transfer-Encoding", "chunked")]),
    "newline": ("200 OK", [("X-A", "b\r\nX-Injected: 1")]),
    "name": ("200 OK", [("X A", "b")]),
    "beyond": ("200 OK", [("X-A", "\u20ac")]),
    "bytes": ("200 OK", [(b"X-A", b"b")]),
    "pairs": ("200 OK", [("X-A",)]),
    "dict": ("200 OK", {"X-A": "b"}),
    "status": ("OK", []),
    "number": (200, []),
    "interim": ("100 Continue", []),
    "length": ("200 OK", [("Content-Length", "-1")]),
    "lengths": ("200 OK", [("Content-Length", "1"), ("Content-Length", "2")]),
    "injected": ("200 OK\r\nX-Injected: 1", []),
}


def heads(environ: Environ, start_response: Start) -> list[bytes]:
    """Heads that must be refused, by name."""
    status, headers = HEADS[environ["PATH_INFO"].rpartition("/")[2]]
    start_response(status, headers)
    return [b"x"]


def cookies(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    return [b"two"]


FILE_BYTES = bytes(range(256)) * 4096


def file(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """A real file; a part of it where the query says from where."""
    source = tempfile.TemporaryFile()  # noqa: SIM115
    source.write(FILE_BYTES)
    source.flush()
    source.seek(int(environ["QUERY_STRING"] or 0))
    start_response("200 OK", TEXT)
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source, 1000)
    return wrapped


def big_file(environ: Environ, start_response: Start) -> Iterable[bytes]:
    source = tempfile.TemporaryFile()  # noqa: SIM115
    source.truncate(64 << 20)
    start_response("200 OK", TEXT)
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source)
    return wrapped


def file_like(environ: Environ, start_response: Start) -> Iterable[bytes]:
    class Source(io.BytesIO):
        def close(self) -> None:
            log.append("closed")
            super().close()

    start_response("200 OK", TEXT)
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](Source(FILE_BYTES), 1000)
    return wrapped


def file_short(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """A file of which less is to be sent than there is."""
    source = tempfile.NamedTemporaryFile()  # noqa: SIM115
    source.write(FILE_BYTES)
    source.seek(10)
    start_response("200 OK", [("Content-Length", "20")])
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source)
    return wrapped


def packed(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """A file-like object whose descriptor is that of something else."""
    import gzip

    place = tempfile.mkstemp()[1]
    with gzip.open(place, "wb") as target:
        target.write(FILE_BYTES)
    start_response("200 OK", TEXT)
    source = gzip.open(place)  # noqa: SIM115
    os.unlink(place)
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source)
    return wrapped


def endless(environ: Environ, start_response: Start) -> Iterator[bytes]:
    start_response("200 OK", TEXT)
    try:
        while True:
            yield bytes(65536)
    finally:
        log.append("left")


def ticks(environ: Environ, start_response: Start) -> Iterator[bytes]:
    """A block whenever there is a line in a file, so that its reader says when."""
    place = environ["QUERY_STRING"]
    start_response("200 OK", TEXT)
    yield b"begun"
    with open(place, "rb") as source:
        while line := source.readline():
            yield line


def contexts(environ: Environ, start_response: Start) -> Iterator[bytes]:
    """Shows its own variable before and after others may have run."""
    name = environ["QUERY_STRING"]
    before = request.get()
    token = request.set(name)
    start_response("200 OK", TEXT)
    for _ in range(64):
        yield (request.get().encode() + b" ").ljust(65536)
    request.reset(token)
    yield b"before: " + before.encode()


def who(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    return [request.get().encode()]


def logged(environ: Environ, start_response: Start) -> list[bytes]:
    gc.collect()
    start_response("200 OK", TEXT)
    shown = " ".join(log)
    log.clear()
    return [shown.encode()]


def sleep(environ: Environ, start_response: Start) -> list[bytes]:
    """Waits until a pipe is closed."""
    with open(environ["QUERY_STRING"], "rb") as pipe:
        pipe.read()
    start_response("200 OK", TEXT)
    return [threading.current_thread().name.encode()]


def counted(environ: Environ, start_response: Start) -> list[bytes]:
    """Thread-local data lives as long as the thread."""
    local.count = getattr(local, "count", 0) + 1
    start_response("200 OK", TEXT)
    return [str(local.count).encode()]


def leaves(environ: Environ, start_response: Start) -> NoReturn:
    sys.exit("enough")


def crashes(environ: Environ, start_response: Start) -> NoReturn:
    ctypes.string_at(0)
    raise AssertionError("that cannot be read")


def hangs(environ: Environ, start_response: Start) -> NoReturn:
    while True:
        pass


def process(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    return [str(os.getpid()).encode()]


beats = 0


def background(environ: Environ, start_response: Start) -> list[bytes]:
    """A thread of the application's own goes on while nothing is asked."""
    start_response("200 OK", TEXT)
    return [str(beats).encode()]


def beat() -> None:
    global beats
    while True:
        time.sleep(0.01)
        beats += 1


def late_start(environ: Environ, start_response: Start) -> list[bytes]:
    """Keeps start_response for the next request, which uses it."""
    global kept
    try:
        if kept is not None:
            kept("200 OK", TEXT)
    except AssertionError as error:
        start_response("200 OK", TEXT)
        return [str(error).encode()]
    kept = start_response
    start_response("200 OK", TEXT)
    return [b"kept"]


def late_write(environ: Environ, start_response: Start) -> list[bytes]:
    """Keeps only `write`, which a later request uses."""
    write = start_response("200 OK", TEXT)
    kept_writes.append(write)
    said = []
    for old in kept_writes[:-1]:
        try:
            old(b"of another")
        except AssertionError as error:
            said.append(str(error))
    return ["\n".join(said).encode()]


def starts(environ: Environ, start_response: Start) -> list[bytes]:
    """How many bound methods of `start_response` there are."""
    owners = [type(getattr(each, "__self__", None)).__name__ for each in gc.get_objects()]
    start_response("200 OK", TEXT)
    return [str(owners.count("StartResponse")).encode()]


def reason(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("404 Gone fishing, caf\xe9", TEXT)
    return [b""]


def refused(environ: Environ, start_response: Start) -> list[bytes]:
    """A head that cannot replace the one before."""
    start_response("203 Kept", [("X-First", "1")])
    try:
        raise ValueError("replaces the head")
    except ValueError:
        try:
            start_response("200 OK", [("X A", "")], sys.exc_info())
        except ValueError:
            return [b"refused"]
    return [b"taken"]


def long_list(environ: Environ, start_response: Start) -> list[bytes]:
    start_response("200 OK", TEXT)
    return [bytes(1000)] * 100


def wrong_long(environ: Environ, start_response: Start) -> tuple[bytes, ...]:
    start_response("200 OK", [("Content-Length", "1")])
    return (bytes(1000),) * 100


def unsized(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """A file of the kernel's, which says that it is empty."""
    start_response("200 OK", TEXT)
    source = open("/proc/self/stat", "rb")  # noqa: SIM115
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source)
    return wrapped


def square(number: int) -> int:
    return number * number


def forks(environ: Environ, start_response: Start) -> list[bytes]:
    """Processes that are forked, and ended by SIGTERM."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares = pool.map(square, range(4))
    pool.join()
    start_response("200 OK", TEXT)
    return [repr(squares).encode()]


kept_writes: list[Callable[[bytes], object]] = []
kept: Start | None = None

VALIDATED = {
    name: validator(application)
    for name, application in {
        "plain": plain,
        "several": several,
        "announced": announced,
        "instance": Instance,
        "writer": writer,
        "empty": empty,
        "echo": echo,
        "file": file,
        "file_like": file_like,
        "head_only": head_only,
    }.items()
}


def app(environ: Environ, start_response: Start) -> Iterable[bytes]:
    """Any of these by the first part of the path."""
    name = environ["PATH_INFO"].split("/")[1]
    if name == "validated":
        inner = environ["PATH_INFO"].split("/")[2]
        return VALIDATED[inner](environ, start_response)
    application = globals()[name]
    answer: Iterable[bytes] = application(environ, start_response)
    return answer


def make() -> Callable[..., object]:
    return plain


def farewell() -> None:
    print("the application says goodbye", flush=True)


atexit.register(farewell)
threading.Thread(target=beat, daemon=True).start()
