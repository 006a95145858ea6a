"""Keeps one number: a line with a decimal number adds it and is answered with the sum. The backing service of `counter`.

DIES_AFTER=N: kills itself with SIGKILL at the line after so many.
"""

import asyncio
import os
import signal
import socket

import pingserver

total = 0
asked = 0
dies_after = int(os.environ.get("DIES_AFTER", "-1"))


async def converse(reader, writer):
    global total, asked
    while line := await reader.readline():
        asked += 1
        if asked == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        total += int(line)
        writer.write(f"{total}\n".encode())
    writer.close()


async def main(args):
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((args.host, args.port))
    await asyncio.start_server(converse, sock=listener)
    await terminated.wait()


# Its own folder is there, and nobody has been in it.
with open(os.path.join(os.environ["WORK"], "store.txt"), "x", encoding="ascii") as file:
    file.write("0\n")
asyncio.run(main(pingserver.arguments()))
