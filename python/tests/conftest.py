"""A running `prony-wsgi`, and a client that shows every byte."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
APPS = HERE / "apps"
# Seconds for whatever should come at once, on a machine that does other things, too.
PATIENCE = 30.0


class LateError(Exception):
    """Something did not come in its time."""


def listed(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Puts what is skipped onto the list of `./test`; makes it a failure where nothing may be."""
    if not report.skipped:
        return
    told = report.longrepr
    said = told[2].removeprefix("Skipped: ") if isinstance(told, tuple) else ""
    # A failure that is expected is one more way to leave a test out.
    reason = str(getattr(report, "wasxfail", said)) or "no reason given"
    if os.environ.get("PRONY_SKIP_NOTHING", "") not in ("", "0"):
        report.outcome = "failed"
        vars(report).pop("wasxfail", None)
        report.longrepr = f"{report.nodeid}: {reason}, and nothing may be skipped"
    elif path := os.environ.get("PRONY_SKIPPED"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}: {reason}\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    listed(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    listed(report)
    return report


@dataclass
class Answer:
    """An answer as it came."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """The values of a header."""
        return [value for key, value in self.headers if key == name.lower()]

    def one(self, name: str) -> str:
        """The value of a header that is there once."""
        (value,) = self.all(name)
        return value


def in_time(is_so: Callable[[], bool]) -> None:
    """Asks until it is so."""
    due = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > due:
            raise LateError("it never was so")


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(
        self,
        path: str = "/",
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Sends a request and reads its answer."""
        lines = {"Host": "test", **(headers or {})}
        if body is not None:
            lines["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b""))
        return self.read(method)

    def read_head(self) -> Answer:
        line = self.file.readline()
        if not line:
            raise EOFError("the server has closed the connection")
        _, status, reason = line.decode("latin-1").rstrip("\r\n").split(" ", 2)
        headers = []
        while line := self.file.readline().rstrip(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name.lower(), value.strip()))
        return Answer(int(status), reason, headers, b"")

    def read(self, method: str = "GET") -> Answer:
        """Reads an answer; raises EOFError where it is cut off."""
        answer = self.read_head()
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        if answer.all("transfer-encoding") == ["chunked"]:
            answer.body = b"".join(self.chunks())
        elif lengths := answer.all("content-length"):
            answer.body = self.exactly(int(lengths[0]))
        else:
            answer.body = self.file.read()
        return answer

    def chunk(self) -> bytes:
        size = self.file.readline()
        if not size:
            raise EOFError("cut off between chunks")
        data = self.exactly(int(size, 16))
        self.exactly(2)
        return data

    def chunks(self) -> Iterator[bytes]:
        while data := self.chunk():
            yield data

    def exactly(self, size: int) -> bytes:
        data = self.file.read(size)
        if len(data) < size:
            raise EOFError(f"cut off after {len(data)} of {size} bytes")
        return data


@dataclass
class Server:
    """A server; what it says can be waited for."""

    process: subprocess.Popen[bytes]
    port: int = 0
    said: str = ""
    connections: list[Client] = field(default_factory=list)

    def wait_for(self, text: str) -> str:
        """Reads what it prints until this is there; yields all so far."""
        stream = self.process.stdout
        assert stream is not None
        due = time.monotonic() + PATIENCE
        while text not in self.said:
            left = due - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise LateError(f"never said {text!r}, but:\n{self.said}")
            more = os.read(stream.fileno(), 65536)
            if not more:
                raise LateError(f"ended before it said {text!r}:\n{self.said}")
            self.said += more.decode(errors="replace")
        return self.said

    def listening(self) -> None:
        """Waits until it says where it listens."""
        self.wait_for("listening on http://")
        rest = self.said.partition("listening on http://")[2]
        while "\n" not in rest:
            rest = self.wait_for(rest + "\n").partition("listening on http://")[2]
        self.port = int(rest.split()[0].rpartition(":")[2])

    def rest(self) -> str:
        """Waits for its end; yields all that it printed."""
        output, _ = self.process.communicate(timeout=PATIENCE)
        self.said += output.decode(errors="replace")
        return self.said

    def stop(self) -> int:
        """Ends it gracefully; yields its exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.rest()
        return self.process.returncode

    def close(self) -> None:
        """Closes the connections that were made."""
        for client in self.connections:
            client.close()

    def connect(self) -> Client:
        client = Client(self.port)
        self.connections.append(client)
        return client

    def ask(
        self,
        path: str = "/",
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Asks on a connection of its own."""
        with Client(self.port) as client:
            return client.ask(path, method=method, headers=headers, body=body)


@contextmanager
def running(
    *words: str, cwd: Path = APPS, python: tuple[str, ...] = ("-m", "prony_wsgi")
) -> Iterator[subprocess.Popen[bytes]]:
    """The command with these words; nothing of it is left afterwards. `python` is what runs it."""
    process = subprocess.Popen(
        [sys.executable, *python, *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        # Its workers die with it.
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, which end with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(application: str, *words: str, cwd: Path = APPS) -> Server:
            process = stack.enter_context(running(application, "0", *words, cwd=cwd))
            server = Server(process)
            server.listening()
            stack.callback(server.close)
            return server

        yield start
