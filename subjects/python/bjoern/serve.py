"""Serves the application: serve.py --host HOST --port PORT --workers N [--backlog N].

bjoern is one event loop in one process. Several share the listening socket: this process forks them, and ends them
when it is told to end, or when one of them has ended."""

import argparse
import os
import signal
import sys

import bjoern

from app import app


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--backlog", type=int, default=65535)
    args = parser.parse_args()

    bjoern.listen(app, args.host, args.port, listen_backlog=args.backlog)
    if args.workers == 1:
        bjoern.run()
        return
    # Before the first fork: who is told to end while workers are being made ends those that are there.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    children = []
    try:
        for _ in range(args.workers):
            children.append(fork())
        pid, status = os.wait()
        children.remove(pid)
        sys.exit(f"worker {pid} ended with status {os.waitstatus_to_exitcode(status)}")
    finally:
        for child in children:
            os.kill(child, signal.SIGTERM)
        for child in children:
            os.waitpid(child, 0)


def fork():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        bjoern.run()
        os._exit(0)
    return child


if __name__ == "__main__":
    main()
