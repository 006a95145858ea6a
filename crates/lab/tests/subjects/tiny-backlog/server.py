"""Listens with a backlog of 8, and accepts nothing for 500 ms in every 1250 ms; what is accepted is served well.

Not in every second: Linux repeats a lost SYN after whole seconds, so a connection that met the pause once would
meet it each time.
"""

import asyncio
import signal
import threading
import time

import pingserver

BACKLOG = 8
PAUSE_S = 0.5
PERIOD_S = 1.25


def accept(listener, loop):
    """Accepts in a thread of its own, so that a pause stops nothing else."""
    started = time.monotonic()
    while True:
        phase = (time.monotonic() - started) % PERIOD_S
        if phase < PAUSE_S:
            time.sleep(PAUSE_S - phase)
        connection, _ = listener.accept()
        asyncio.run_coroutine_threadsafe(loop.connect_accepted_socket(pingserver.Connection, connection), loop)


async def serve():
    terminated = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, terminated.set)
    listener = pingserver.listen(pingserver.arguments(), BACKLOG)
    threading.Thread(target=accept, args=(listener, loop), daemon=True).start()
    await terminated.wait()


asyncio.run(serve())
