"""One work, in this process or in many at once, and what came of it as a line of JSON."""

import argparse
import asyncio
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import services
import works

COUNT_MAX = 2**32 - 1
THREADS_MAX = 1024
WORKS = {
    "coroutine": ("coroutines", works.coroutine),
    "event": ("events", works.event),
    "start": ("services", services.start),
    "start-stop": ("cycles", services.start_stop),
    "serializer": ("messages", works.serializer),
}


def number(largest):
    def parse(text):
        if not text.isdecimal() or not 1 <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"not a whole number from 1 to {largest}: {text}")
        return int(text)

    return parse


def parse():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--count", type=number(COUNT_MAX), required=True)
    parser.add_argument("--threads", type=number(THREADS_MAX), default=1, help="processes, each with a loop of its own")
    parser.add_argument("--injection", choices=["explicit", "constructor"], default="explicit")
    parser.add_argument("--priorities", type=int, choices=[1, 8], default=1)
    parser.add_argument("--handler", choices=["coroutine", "plain", "none"], default="coroutine")
    parser.add_argument("--payload", type=int, choices=[0, 32], default=0, help="bytes that each event carries")
    parser.add_argument("--through", choices=["events", "tasks"], default="events")
    return parser.parse_args()


def run(options):
    """The work in this process, from the making of its loop to the end of it: checksum and bytes."""
    return asyncio.run(WORKS[options.work][1](options))


def main():
    options = parse()
    begun = time.monotonic_ns()
    if options.threads == 1:
        outcomes = [run(options)]
    else:
        # Python's threads do not run at the same time. This process has one thread, so that a fork is safe.
        with ProcessPoolExecutor(options.threads, multiprocessing.get_context("fork")) as pool:
            outcomes = list(pool.map(run, [options] * options.threads))
    elapsed_ns = time.monotonic_ns() - begun
    line = {
        "measure": WORKS[options.work][0],
        "threads": options.threads,
        "count": options.count * options.threads,
        "elapsed_ns": elapsed_ns,
        "bytes": sum(size for _, size in outcomes),
        "checksum": str(sum(checksum for checksum, _ in outcomes) % 2**64),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
