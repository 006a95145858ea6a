"""Applications of every shape in which an answer can be given, each in the standard library's
validator. What they answer depends on the method and on the body, which they echo."""

import io
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

Environ = dict[str, Any]
Start = Callable[..., Callable[[bytes], object]]
TEXT = [("Content-Type", "text/plain")]


def body_of(environ: Environ) -> bytes:
    """What was sent, or else what is always there."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return environ["wsgi.input"].read(length) or b"hello world"


def whole(environ: Environ, start: Start) -> list[bytes]:
    start("200 OK", TEXT)
    return [body_of(environ)]


def one_by_one(environ: Environ, start: Start) -> tuple[bytes, ...]:
    start("200 OK", TEXT)
    body = body_of(environ)
    return tuple(body[at : at + 1] for at in range(len(body)))


def announced(environ: Environ, start: Start) -> Iterable[bytes]:
    body = body_of(environ)
    start("200 OK", [*TEXT, ("Content-Length", str(len(body)))])
    return iter([body[:3], b"", body[3:]])


def lazy(environ: Environ, start: Start) -> Iterator[bytes]:
    start("200 OK", TEXT)
    yield b""
    yield body_of(environ)


class Closed:
    """An iterable that has to be closed, and is no iterator."""

    def __init__(self, environ: Environ, start: Start) -> None:
        self.body = body_of(environ)
        start("200 OK", TEXT)

    def __iter__(self) -> Iterator[bytes]:
        yield from (self.body[:1], self.body[1:])

    def close(self) -> None:
        print("an answer was closed", flush=True)


def written(environ: Environ, start: Start) -> list[bytes]:
    write = start("200 OK", TEXT)
    write(body_of(environ))
    return []


def written_and_given(environ: Environ, start: Start) -> Iterator[bytes]:
    body = body_of(environ)
    write = start("200 OK", TEXT)
    write(body[:2])
    return iter([body[2:4], body[4:]])


def no_info(environ: Environ, start: Start) -> list[bytes]:
    start("200 OK", TEXT, None)
    return [body_of(environ)]


def replaced(environ: Environ, start: Start) -> list[bytes]:
    start("500 Never Seen", [*TEXT, ("Content-Length", "1000")])
    try:
        raise ValueError("replaces the head")
    except ValueError:
        start("200 OK", TEXT, sys.exc_info())
    return [body_of(environ)]


def wrapped(environ: Environ, start: Start) -> Iterable[bytes]:
    start("200 OK", TEXT)
    answer: Iterable[bytes] = environ["wsgi.file_wrapper"](io.BytesIO(body_of(environ)), 4)
    return answer


def file(environ: Environ, start: Start) -> Iterable[bytes]:
    source = tempfile.TemporaryFile()  # noqa: SIM115
    source.write(body_of(environ))
    source.seek(0)
    start("200 OK", TEXT)
    answer: Iterable[bytes] = environ["wsgi.file_wrapper"](source)
    return answer


def by_lines(environ: Environ, start: Start) -> list[bytes]:
    start("200 OK", TEXT)
    source = environ["wsgi.input"]
    first = source.readline()
    return [first, *source.readlines(8), *source, b"" if first else b"hello world"]


def no_content(environ: Environ, start: Start) -> list[bytes]:
    body_of(environ)
    start("204 No Content", [("X-Left", "1")])
    return []


def not_modified(environ: Environ, start: Start) -> Iterator[bytes]:
    start("304 Not Modified", [("ETag", '"1"')])
    return iter([])


def wrong(environ: Environ, start: Start) -> list[Any]:
    """Breaks a rule, so that the test sees what the validator says."""
    start("200 OK", [*TEXT, ("Status", "200 OK")])
    return [b"never"]


SHAPES = {
    shape.__name__: validator(shape)
    for shape in (
        whole,
        one_by_one,
        announced,
        lazy,
        Closed,
        written,
        written_and_given,
        no_info,
        replaced,
        wrapped,
        file,
        by_lines,
        no_content,
        not_modified,
        wrong,
    )
}


def app(environ: Environ, start: Start) -> Iterable[bytes]:
    """The shape that the path names."""
    return SHAPES[environ["PATH_INFO"][1:]](environ, start)
