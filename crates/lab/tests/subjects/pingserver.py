"""A correct server of /ping and /hello, small enough to be spoiled in one place.

For the subjects in the folders beside this file; not for measuring. One thread, asyncio, standard library only.
A subclass of `Connection` overrides what it does wrong; `main` parses the arguments, listens and ends on SIGTERM.
"""

import argparse
import asyncio
import json
import signal
import socket

BACKLOG = 4096
REQUEST_BYTES_MAX = 64 * 1024
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection."""

    def connection_made(self, transport):
        self.transport = transport
        self.buffer = b""

    def data_received(self, data):
        self.buffer += data
        try:
            while (request := self.next_request()) is not None:
                self.respond(*request)
        except (ValueError, IndexError):
            self.transport.write(encode(400, "text/plain", b"bad request", "HTTP/1.1", False, False))
            self.transport.close()

    def next_request(self):
        """Takes one whole request off the buffer: method, path, version, fields, body. None if there is none yet."""
        if len(self.buffer) > REQUEST_BYTES_MAX:
            raise ValueError("request too large")
        head, end, rest = self.buffer.partition(b"\r\n\r\n")
        if not end or self.transport.is_closing():
            return None
        line, *lines = head.decode("latin-1").split("\r\n")
        method, path, version = line.split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(fields.get("content-length", 0))
        if len(rest) < length:
            return None
        self.buffer = rest[length:]
        return method, path, version, fields, rest[:length]

    def respond(self, method, path, version, fields, body):
        status, kind, answer = self.answer(method, path, body)
        asked = fields.get("connection", "").lower()
        keep = asked == "keep-alive" if version == "HTTP/1.0" else asked != "close"
        self.transport.write(encode(status, kind, answer, version, keep, method == "HEAD"))
        if not keep:
            self.transport.close()

    def answer(self, method, path, body):
        """Status, content type and body of the answer."""
        if path == "/hello":
            return (200, "text/plain", b"Hello, World!") if method in ("GET", "HEAD") else (405, "text/plain", b"")
        if path == "/ping":
            return self.ping(body) if method == "POST" else (405, "text/plain", b"")
        return 404, "text/plain", b"not found"

    def ping(self, body):
        try:
            message = json.loads(body)
        except ValueError:
            return 400, "text/plain", b"not JSON"
        sequence = message.get("sequence") if isinstance(message, dict) else None
        # In Python, True is an int.
        if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 0:
            return 400, "text/plain", b"no sequence"
        return 200, "application/json", json.dumps({"sequence": self.sequence(sequence)}, separators=(",", ":")).encode()

    def sequence(self, asked):
        """The sequence to answer with."""
        return asked


def encode(status, kind, body, version, keep, head_only):
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    if not keep:
        lines.append("Connection: close")
    elif version == "HTTP/1.0":
        lines.append("Connection: keep-alive")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head_only else body)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    return parser.parse_args()


def listen(args, backlog=BACKLOG):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((args.host, args.port))
    listener.listen(backlog)
    return listener


async def serve(listener, connection):
    terminated = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, terminated.set)
    await loop.create_server(connection, sock=listener, backlog=BACKLOG)
    await terminated.wait()


def main(connection=Connection):
    asyncio.run(serve(listen(arguments()), connection))
