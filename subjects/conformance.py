#!/usr/bin/env python3
"""Checks a running server against CONTRACT.md, over plain sockets and with the standard library only.

For the author of a subject, and for tests. It is not a load generator, and it measures nothing.

    conformance.py --port PORT [--host HOST] [--endpoint /ping --endpoint /hello] [--seed SEED]

A host of applications has the endpoints `/`, `/hello` and `/mixed`.

It prints one line for each check, `must NAME ok` or `can NAME FAIL detail`, and exits with 1 if a `must` failed,
with 2 if the server could not be reached. No `must` check relies on a capability: each of their requests has a
connection of its own.
"""

import argparse
import json
import random
import socket
import sys
import time

ENDPOINTS = ["/ping", "/hello"]
HOSTED = ["/", "/mixed"]
SEQUENCE_MAX = 2**53 - 1
HELLO = b"Hello, World!"
HOSTED_HELLO = b"hello world"
# Requests for /mixed: with four workers or fewer, one of them gets a hundred at the least.
MIXED_COUNT = 400
MIXED_SLOW_S = 0.1
# One in a hundred, and one more for each worker; nothing is known here of how many there are.
MIXED_SLOW_MAX = 20
HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 1024 * 1024
# Between two pieces of a request: long enough for a server on the same machine to read the first one alone.
PIECE_GAP_S = 0.001

BAD_BODIES = {
    "empty": b"",
    "cut": b'{"sequence":1',
    "not-json": b"sequence=1",
    "single-quotes": b"{'sequence':1}",
    "garbage-after": b'{"sequence":1}x',
    "no-value": b'{"sequence":}',
    "list": b"[]",
    "number": b"7",
    "null": b"null",
    "missing": b"{}",
    "other-key": b'{"number":1}',
    "string": b'{"sequence":"7"}',
    "null-value": b'{"sequence":null}',
    "true-value": b'{"sequence":true}',
    "nested": b'{"sequence":{"sequence":1}}',
    "fraction": b'{"sequence":1.5}',
    "negative": b'{"sequence":-1}',
}


class Failed(Exception):
    """A check's server did something else than the contract says."""


def expect(condition, detail):
    if not condition:
        raise Failed(detail)


class Response:
    def __init__(self, version, status, fields):
        self.version = version
        self.status = status
        self.fields = fields
        self.body = b""

    def field(self, name):
        """The value of a header field, or None; several are joined with a comma."""
        values = [value for key, value in self.fields if key == name]
        return ", ".join(values) if values else None

    def tokens(self, name):
        return {token.strip().lower() for token in (self.field(name) or "").split(",")}


class Connection:
    """One TCP connection that reads responses one after the other."""

    def __init__(self, target):
        self.socket = socket.create_connection((target.host, target.port), timeout=target.timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def fill(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return len(data) > 0

    def until(self, mark, bytes_max):
        while mark not in self.buffer:
            expect(len(self.buffer) <= bytes_max, f"no {mark!r} in {bytes_max} bytes")
            expect(self.fill(), f"connection closed after {self.buffer[:80]!r}")
        data, self.buffer = self.buffer.split(mark, 1)
        return data

    def exactly(self, length):
        expect(length <= BODY_BYTES_MAX, f"a body of {length} bytes")
        while len(self.buffer) < length:
            expect(self.fill(), f"connection closed after {len(self.buffer)} of {length} bytes of body")
        data, self.buffer = self.buffer[:length], self.buffer[length:]
        return data

    def rest(self):
        while self.fill():
            expect(len(self.buffer) <= BODY_BYTES_MAX, f"over {BODY_BYTES_MAX} bytes until close")
        data, self.buffer = self.buffer, b""
        return data

    def chunks(self):
        body = b""
        while True:
            length = int(self.until(b"\r\n", HEAD_BYTES_MAX).split(b";")[0], 16)
            if length == 0:
                while self.until(b"\r\n", HEAD_BYTES_MAX):
                    pass
                return body
            body += self.exactly(length)
            expect(self.exactly(2) == b"\r\n", "a chunk that does not end with CR LF")

    def response(self, method="GET"):
        head = self.until(b"\r\n\r\n", HEAD_BYTES_MAX).decode("latin-1")
        status_line, *lines = head.split("\r\n")
        parts = status_line.split(" ", 2)
        expect(len(parts) >= 2 and parts[0].startswith("HTTP/1.") and parts[1].isdigit(), f"not a status line: {status_line!r}")
        fields = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        response = Response(parts[0], int(parts[1]), fields)
        if method == "HEAD" or response.status in (204, 304):
            return response
        if "chunked" in response.tokens("transfer-encoding"):
            response.body = self.chunks()
        elif response.field("content-length") is not None:
            response.body = self.exactly(int(response.field("content-length")))
        else:
            response.body = self.rest()
        return response

    def silent(self):
        """Whether nothing further comes until the server closes, or the time-out."""
        try:
            while self.fill():
                pass
        except OSError:
            pass
        return not self.buffer

    def closed(self):
        """Whether the server closes, with nothing further sent, before the time-out."""
        try:
            return not self.buffer and self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def request(method, path, body=None, fields=(), version="1.1", names=str):
    """The bytes of a request; `names` is applied to the names of its header fields."""
    lines = [f"{method} {path} HTTP/{version}", f"{names('Host')}: localhost"]
    if body is not None:
        lines += [f"{names('Content-Type')}: application/json", f"{names('Content-Length')}: {len(body)}"]
    lines += [f"{names(name)}: {value}" for name, value in fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def ping_body(sequence):
    return b'{"sequence":%d}' % sequence


def media_type(response):
    return (response.field("content-type") or "").split(";")[0].strip().lower()


def is_ping(response, sequence):
    expect(response.status == 200, f"status {response.status}")
    expect(response.body == ping_body(sequence), f"body {response.body[:80]!r} for sequence {sequence}")
    expect(media_type(response) == "application/json", f"content type {response.field('content-type')!r}")


def is_hello(response, body=HELLO):
    expect(response.status == 200, f"status {response.status}")
    expect(response.body == body, f"body {response.body[:80]!r}")
    expect(media_type(response) == "text/plain", f"content type {response.field('content-type')!r}")


class Target:
    """The server under check, and the checks."""

    def __init__(self, host, port, endpoints, seed, timeout_s):
        self.host = host
        self.port = port
        self.endpoints = endpoints
        self.random = random.Random(seed)
        self.timeout_s = timeout_s

    def once(self, data, method="GET"):
        with Connection(self) as connection:
            connection.send(data)
            return connection.response(method)

    def sequence(self):
        return self.random.randrange(SEQUENCE_MAX + 1)

    def probe(self, fields=(), version="1.1", names=str):
        """A request that the server offers, and the check of its answer: ping where there is one."""
        if "/ping" in self.endpoints:
            sequence = self.sequence()
            body = ping_body(sequence)
            return request("POST", "/ping", body, fields, version, names), lambda response: is_ping(response, sequence)
        return request("GET", "/hello", None, fields, version, names), is_hello

    # Answers

    def ping_values(self):
        for sequence in [0, 1, 9, 2**31, 2**32, SEQUENCE_MAX] + [self.sequence() for _ in range(20)]:
            is_ping(self.once(request("POST", "/ping", ping_body(sequence))), sequence)

    def ping_white_space(self):
        for form in ['{"sequence": %d}', ' { "sequence" : %d } ', '\r\n\t{\n\t"sequence"\t:\r\n%d\n}\r\n']:
            sequence = self.sequence()
            is_ping(self.once(request("POST", "/ping", (form % sequence).encode())), sequence)

    def ping_escaped_key(self):
        # A parser reads \u0065 as e; a search for the bytes of "sequence" does not.
        sequence = self.sequence()
        body = (r'{"s\u0065quence":%d}' % sequence).encode()
        expect(json.loads(body) == {"sequence": sequence}, "this check is wrong")
        is_ping(self.once(request("POST", "/ping", body)), sequence)

    def ping_refuses(self, body):
        status = self.once(request("POST", "/ping", body)).status
        expect(status == 400, f"status {status} for {body!r}")

    def hello(self):
        is_hello(self.once(request("GET", "/hello")))

    def root(self):
        is_hello(self.once(request("GET", "/")), HOSTED_HELLO)

    def mixed(self):
        slow = 0
        for _ in range(MIXED_COUNT):
            began = time.monotonic()
            is_hello(self.once(request("GET", "/mixed")), HOSTED_HELLO)
            slow += time.monotonic() - began >= MIXED_SLOW_S
        expect(0 < slow <= MIXED_SLOW_MAX, f"{slow} of {MIXED_COUNT} took {MIXED_SLOW_S} s")

    def not_found(self):
        unknown = [path for path in ["/", *ENDPOINTS] if path not in self.endpoints]
        for path in ["/nothing", "/hello/more", *unknown]:
            status = self.once(request("GET", path)).status
            expect(status == 404, f"status {status} for GET {path}")

    def wrong_method(self):
        for path in self.endpoints:
            wrong = request("GET", path) if path == "/ping" else request("POST", path, b"{}")
            status = self.once(wrong).status
            expect(status in (404, 405), f"status {status} for {path}")

    # Capabilities

    def keep_alive(self):
        with Connection(self) as connection:
            for done in range(100):
                data, check = self.probe()
                try:
                    connection.send(data)
                    response = connection.response()
                except (Failed, ConnectionError) as error:
                    raise Failed(f"after {done} requests: {error}") from error
                check(response)

    def pipelining(self):
        probes = [self.probe() for _ in range(16)]
        with Connection(self) as connection:
            connection.send(b"".join(data for data, _ in probes))
            for number, (_, check) in enumerate(probes):
                try:
                    check(connection.response())
                except (Failed, ConnectionError, TimeoutError) as error:
                    raise Failed(f"answer {number + 1} of {len(probes)}: {error}") from error

    def split_in_two(self):
        for at in range(1, len(self.probe()[0])):
            data, check = self.probe()
            if at < len(data):
                self.in_pieces([data[:at], data[at:]], check, f"split at byte {at}")

    def split_in_bytes(self):
        data, check = self.probe()
        self.in_pieces([data[at : at + 1] for at in range(len(data))], check, "one byte at a time")

    def in_pieces(self, pieces, check, what):
        try:
            with Connection(self) as connection:
                for piece in pieces:
                    connection.send(piece)
                    time.sleep(PIECE_GAP_S)
                check(connection.response())
        except (Failed, OSError) as error:
            raise Failed(f"{what}: {error}") from error

    def head(self):
        with Connection(self) as connection:
            connection.send(request("HEAD", "/hello", fields=[("Connection", "close")]))
            response = connection.response("HEAD")
            expect(response.status == 200, f"status {response.status}")
            expect(media_type(response) == "text/plain", f"content type {response.field('content-type')!r}")
            length = response.field("content-length")
            expect(length in (None, str(len(HELLO))), f"content length {length}")
            expect(connection.silent(), f"a body: {connection.buffer[:80]!r}")

    def header_case(self):
        for names in (str.upper, str.lower):
            data, check = self.probe(names=names)
            check(self.once(data))

    def closes_after(self, fields, version):
        data, check = self.probe(fields, version)
        with Connection(self) as connection:
            connection.send(data)
            check(connection.response())
            expect(connection.closed(), "connection still open")

    def close(self):
        self.closes_after([("Connection", "close")], "1.1")

    def http_1_0(self):
        self.closes_after([], "1.0")

    def http_1_0_keep_alive(self):
        with Connection(self) as connection:
            for _ in range(3):
                data, check = self.probe([("Connection", "keep-alive")], "1.0")
                connection.send(data)
                response = connection.response()
                check(response)
                # An answer of version 1.1 stays open by itself, in the eyes of a client that looks at its version.
                said = "keep-alive" in response.tokens("connection") or response.version == "HTTP/1.1"
                expect(said and "close" not in response.tokens("connection"), f"connection: {response.field('connection')}")

    def checks(self):
        """All checks that apply, as (kind, name, function)."""
        ping, hello = ("/ping" in self.endpoints, "/hello" in self.endpoints)
        if ping:
            yield "must", "ping", self.ping_values
            yield "must", "ping-white-space", self.ping_white_space
            yield "must", "ping-escaped-key", self.ping_escaped_key
            for name, body in BAD_BODIES.items():
                yield "must", f"ping-400-{name}", lambda body=body: self.ping_refuses(body)
        if hello:
            yield "must", "hello", self.hello
        if "/" in self.endpoints:
            yield "must", "root", self.root
        if "/mixed" in self.endpoints:
            yield "must", "mixed", self.mixed
        yield "must", "not-found", self.not_found
        yield "must", "wrong-method", self.wrong_method
        yield "can", "keep-alive", self.keep_alive
        yield "can", "pipelining", self.pipelining
        yield "can", "split-in-two", self.split_in_two
        yield "can", "split-in-bytes", self.split_in_bytes
        if hello:
            yield "can", "head", self.head
        yield "can", "header-case", self.header_case
        yield "can", "close", self.close
        yield "can", "http-1.0", self.http_1_0
        yield "can", "http-1.0-keep-alive", self.http_1_0_keep_alive


def run(target, out=sys.stdout):
    """Runs all checks and prints their lines; returns the names of failed must checks and of failed can checks."""
    failed = {"must": [], "can": []}
    for kind, name, check in target.checks():
        try:
            check()
            print(f"{kind} {name} ok", file=out)
        except (Failed, OSError, ValueError) as error:
            failed[kind].append(name)
            print(f"{kind} {name} FAIL {error or type(error).__name__}", file=out)
    return failed["must"], failed["can"]


def main():
    parser = argparse.ArgumentParser(description="Check a running server against CONTRACT.md.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--endpoint", action="append", choices=ENDPOINTS + HOSTED, help="what it offers (default: /ping and /hello)")
    parser.add_argument("--seed", type=int, default=1, help="of the random sequences")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="for each answer")
    args = parser.parse_args()
    target = Target(args.host, args.port, args.endpoint or ENDPOINTS, args.seed, args.timeout)
    try:
        Connection(target).socket.close()
    except OSError as error:
        print(f"conformance.py: cannot connect to {args.host}:{args.port}: {error}", file=sys.stderr)
        return 2
    must, _ = run(target)
    return 1 if must else 0


if __name__ == "__main__":
    sys.exit(main())
