"""A client in a closed loop on httpx: on each connection of an AsyncClient, one request at a time; its body is read whole."""

import argparse
import asyncio
import collections
import json
import math
import time

import httpx

# How long requests that are under way at the end may take to end.
DRAIN_S = 5
# Latencies are kept as they are; more than these would need memory without a limit.
LATENCIES_MAX = 10_000_000


class Tally:
    def __init__(self):
        self.answered = self.in_flight = self.bytes = self.connect_failed = 0
        self.failed = collections.Counter()
        self.latencies = []

    def count(self, response, error, latency, late):
        # A connection that could not be made is no request.
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            self.connect_failed += 1
        elif late:
            self.in_flight += 1
        elif error is not None:
            self.failed[type(error).__name__] += 1
        elif not response.is_success:
            self.failed["status"] += 1
        else:
            self.answered += 1
            self.bytes += len(response.content)
            if len(self.latencies) < LATENCIES_MAX:
                self.latencies.append(latency)


async def connection(client, url, deadline, tally):
    started = time.monotonic_ns()
    while started < deadline:
        response = error = None
        try:
            response = await client.get(url)
        except httpx.HTTPError as reason:
            error = reason
        ended = time.monotonic_ns()
        tally.count(response, error, ended - started, ended > deadline)
        started = ended


async def drive(words):
    tally = Tally()
    deadline = time.monotonic_ns() + words.seconds * 1_000_000_000
    limits = httpx.Limits(max_connections=words.connections, max_keepalive_connections=words.connections)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        tasks = [asyncio.create_task(connection(client, words.url, deadline, tally)) for _ in range(words.connections)]
        ended, stuck = await asyncio.wait(tasks, timeout=words.seconds + DRAIN_S)
        for task in ended:
            task.result()
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        tally.in_flight += len(stuck)
    return tally


def described(latencies):
    latencies.sort()
    count = len(latencies)
    mean = sum(latencies) / count
    at = {p: latencies[max(math.ceil(count * p / 100), 1) - 1] for p in (50, 75, 90, 99, 99.9, 99.99)}
    return {
        "count": count,
        "min": latencies[0],
        "mean": mean,
        "stdev": math.sqrt(sum((latency - mean) ** 2 for latency in latencies) / count),
        **{"p" + str(p).replace(".", "_"): latency for p, latency in at.items()},
        "max": latencies[-1],
    }


def line(words, tally):
    client = {
        "connections": words.connections,
        "failed": tally.failed.total(),
        "failed_by_kind": tally.failed,
        "in_flight": tally.in_flight,
    }
    if tally.latencies:
        client["latency"] = described(tally.latencies)
    return {
        "measure": "requests",
        "threads": 1,
        "count": tally.answered,
        "elapsed_ns": words.seconds * 1_000_000_000,
        "bytes": tally.bytes,
        "client": client,
        "tallies": {"connect_failed": tally.connect_failed},
    }


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--connections", type=positive, default=1)
    parser.add_argument("--seconds", type=positive, default=1)
    words = parser.parse_args()
    print(json.dumps(line(words, asyncio.run(drive(words)))))


if __name__ == "__main__":
    main()
