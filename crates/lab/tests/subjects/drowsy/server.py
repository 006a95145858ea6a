"""Sees when it was stopped, and a child of it sees it too: each says how long it stood still, whenever that is longer than before.

With CLOSES_AFTER_MS it closes its connections when it stood still for longer than that, as a server with a short keep-alive does.
"""

import asyncio
import os
import time

import pingserver

TICK_S = 0.005
closes_after_s = float(os.environ.get("CLOSES_AFTER_MS", "1e9")) / 1e3
connections = set()


class Watch:
    def __init__(self, name):
        self.name = name
        self.last = time.monotonic()
        self.longest = 0.05

    def tick(self):
        now = time.monotonic()
        gap, self.last = now - self.last, now
        if gap > self.longest:
            self.longest = gap
            print(f"{self.name} stood still for {gap * 1e3:.0f} ms", flush=True)
        return gap


class Connection(pingserver.Connection):
    def connection_made(self, transport):
        super().connection_made(transport)
        if not connections:
            tick(Watch("server"))
        connections.add(self)


def tick(watch):
    if watch.tick() > closes_after_s:
        for connection in connections:
            connection.transport.close()
    asyncio.get_running_loop().call_later(TICK_S, tick, watch)


parent = os.getpid()
if os.fork() == 0:
    own = Watch("child")
    while os.getppid() == parent:
        time.sleep(TICK_S)
        own.tick()
    os._exit(0)
pingserver.main(Connection)
