"""Passes each connection on to one of UPSTREAMS (HOST:PORT,HOST:PORT…), in turn. A front of `counter`."""

import asyncio
import itertools
import os
import signal
import socket

import pingserver

upstreams = itertools.cycle([one.rpartition(":") for one in os.environ["UPSTREAMS"].split(",")])


async def copy(reader, writer):
    try:
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def converse(reader, writer):
    host, _, port = next(upstreams)
    try:
        there, back = await asyncio.open_connection(host, int(port))
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, back), copy(there, writer))


async def main(args):
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((args.host, args.port))
    await asyncio.start_server(converse, sock=listener)
    await terminated.wait()


asyncio.run(main(pingserver.arguments()))
