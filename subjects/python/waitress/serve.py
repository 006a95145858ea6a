"""Serves the application: serve.py --host HOST --port PORT --threads N [--backlog N]."""

import argparse
import logging
import signal
import sys

import waitress

from app import app


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--backlog", type=int, default=65535)
    args = parser.parse_args()

    logging.basicConfig()
    # It would warn of each request that waits for a thread, which is what most do under load.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    # waitress answers what it has begun when its loop is left in this way.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    waitress.serve(
        app,
        host=args.host,
        port=args.port,
        threads=args.threads,
        backlog=args.backlog,
        connection_limit=20480,
        channel_timeout=75,
        # `select`, the default, cannot have more than 1,024 open files.
        asyncore_use_poll=True,
    )


if __name__ == "__main__":
    main()
