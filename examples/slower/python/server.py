"""A server that does rounds of arithmetic for each answer, and so many percent more of its time as it is told."""

import argparse
import asyncio

BASE = 200
# About one percent of what an answer takes is PERCENT rounds, found by timing two numbers of them.
PERCENT = 3
MASK = (1 << 64) - 1
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n\r\nHello, World!"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def rounds(count, seed):
    """Of xorshift, each waiting for the one before."""
    for _ in range(count):
        seed ^= (seed << 13) & MASK
        seed ^= seed >> 7
        seed ^= (seed << 17) & MASK
    return seed


class Connection(asyncio.Protocol):
    """Answers each request when its head has come."""

    def __init__(self, count):
        self.count = count
        self.unread = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        *heads, self.unread = (self.unread + data).split(b"\r\n\r\n")
        for head in heads:
            # Zero never comes out.
            assert rounds(self.count, 88172645463325252)
            self.transport.write(ANSWER if head.startswith(b"GET /hello ") else NOT_FOUND)


async def main():
    words = argparse.ArgumentParser()
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--slower", type=int, default=0, help="by so many percent")
    asked = words.parse_args()
    count = BASE + asked.slower * PERCENT
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(count), "127.0.0.1", asked.port, backlog=65535)
    await server.serve_forever()


asyncio.run(main())
