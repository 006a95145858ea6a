"""Listens with a backlog of 8, and accepts nothing for 500 ms after every 25th connection; what is accepted is served well.

It goes by the count and not by the clock, so that whoever opens 50 connections at once meets the pause on any machine.
"""

import asyncio
import itertools
import signal
import threading
import time

import pingserver

BACKLOG = 8
PAUSE_S = 0.5
PAUSE_EVERY = 25


def accept(listener, loop):
    """Accepts in a thread of its own, so that a pause stops nothing else."""
    for count in itertools.count(1):
        connection, _ = listener.accept()
        asyncio.run_coroutine_threadsafe(loop.connect_accepted_socket(pingserver.Connection, connection), loop)
        if count % PAUSE_EVERY == 0:
            time.sleep(PAUSE_S)


async def serve():
    terminated = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, terminated.set)
    listener = pingserver.listen(pingserver.arguments(), BACKLOG)
    threading.Thread(target=accept, args=(listener, loop), daemon=True).start()
    await terminated.wait()


asyncio.run(serve())
