"""Counts its pings and tells the number at /count, in as many wrong ways as it is told.

STORE=HOST:PORT: the number is kept by `store`, and told it every tenth of a second. KEEP=FILE: it is in this file when
the server has ended and is read when it starts; with KEEP_EACH=1 it is written at each ping. LOSES, INVENTS: every so
many pings one is not counted, or twice. LINES=1: prints a line for each ping. DIES_AFTER=N: kills itself with SIGKILL
at the ping after so many, the instance DIES alone (all where it is not given). INSTANCE: which one it is. LEAVES=1: a
child that holds the standard output outlives it.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys

import pingserver

STORE_EVERY_S = 0.1

pings = 0
number = 0
told = 0
loses = int(os.environ.get("LOSES", "0"))
invents = int(os.environ.get("INVENTS", "0"))
lines = os.environ.get("LINES") == "1"
keep = os.environ.get("KEEP")
keep_each = os.environ.get("KEEP_EACH") == "1"
dies_after = int(os.environ.get("DIES_AFTER", "-1"))
instance = os.environ.get("INSTANCE", "0")
store = None


class Connection(pingserver.Connection):
    def answer(self, method, path, body):
        if path == "/count":
            return 200, "text/plain", f"{number}".encode()
        return super().answer(method, path, body)

    def sequence(self, asked):
        global pings, number
        pings += 1
        if pings == dies_after and os.environ.get("DIES", instance) == instance:
            os.kill(os.getpid(), signal.SIGKILL)
        number += 1
        if loses and pings % loses == 0:
            number -= 1
        if invents and pings % invents == 0:
            number += 1
        if lines:
            print(f"ping {pings}", flush=True)
        if keep_each:
            write()
        return asked


def write():
    # One write of so few bytes is not torn.
    os.pwrite(kept, f"{number:020}\n".encode(), 0)


def ask_store(add):
    """Tells the store what to add; the number that it then has."""
    store.sendall(f"{add}\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        part = store.recv(100)
        if not part:
            sys.exit("the store is gone")
        answer += part
    return int(answer)


def tell_store():
    global number, told
    add = number - told
    number = told = ask_store(add)


async def keep_telling():
    while True:
        await asyncio.sleep(STORE_EVERY_S)
        tell_store()


async def main():
    telling = asyncio.create_task(keep_telling()) if store else None
    serving = asyncio.create_task(pingserver.serve(listener, Connection))
    # Without its store it ends, which is what a test then sees.
    done, _ = await asyncio.wait([task for task in (telling, serving) if task], return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


print("terminal" if sys.stdout.isatty() else "no terminal", flush=True)
if os.environ.get("LEAVES") == "1":
    subprocess.Popen(["sleep", "600"], start_new_session=True)
if "STORE" in os.environ:
    host, _, port = os.environ["STORE"].rpartition(":")
    store = socket.create_connection((host, int(port)))
    tell_store()
if keep:
    kept = os.open(keep, os.O_RDWR | os.O_CREAT, 0o644)
    number = int(os.pread(kept, 100, 0) or b"0")
listener = pingserver.listen(pingserver.arguments())
asyncio.run(main())
if keep:
    write()
if store:
    tell_store()
print("ended", flush=True)
