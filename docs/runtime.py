#!/usr/bin/env python3
"""The runtime's speed, and writes docs/runtime.md.

Every work of `prony bench` runs in a process of its own, on core 0, several times; two
threads take turns with two processes of one thread each, a core for each. Events to
another thread and back are those of the example `event_ping`. Needs two cores.

    ./docs/runtime.py                the page docs/runtime.md
    ./docs/runtime.py --rounds 3 --out -

Other programs that run meanwhile spoil it: where the machine does not become idle it measures nothing (fit.py).
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # a measurement leaves nothing in the tree
import fit  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Title, words, unit of the rate, what is asked for: at least this rate (millions a second, MB/s) or at most this time.
WORKS = [
    ("coroutine, through the queue of events", ["coroutine"], "M/s", "≤ 175 ms", lambda ms, rate: ms <= 175),
    ("coroutine, by tasks of the loop", ["coroutine", "--through", "tasks"], "M/s", "≤ 110 ms", lambda ms, rate: ms <= 110),
    ("event, each to a coroutine", ["event"], "M/s", "≤ 193 ms", lambda ms, rate: ms <= 193),
    ("event of 32 bytes, each to a function", ["event", "--handler", "plain", "--payload", "32"], "M/s", "≤ 129 ms",
     lambda ms, rate: ms <= 129),
    ("event, without a handler", ["event", "--handler", "none"], "M/s", "≥ 104 M/s", lambda ms, rate: rate >= 104),
    ("event, eight priorities mixed", ["event", "--priorities", "8"], "M/s", "≥ 26 M/s", lambda ms, rate: rate >= 26),
    ("start, 10,000 services and their loggers", ["start"], "M/s", "≤ 12 ms", lambda ms, rate: ms <= 12),
    ("the same, injection by constructor", ["start", "--injection", "constructor"], "M/s", "≤ 12 ms",
     lambda ms, rate: ms <= 12),
    ("start & stop", ["start-stop"], "M/s", "≥ 3.3 M/s", lambda ms, rate: rate >= 3.3),
    ("serialiser", ["serializer"], "MB/s", "≥ 585 MB/s", lambda ms, rate: rate >= 585),
]
BOTH = [("coroutine", ["coroutine"]), ("event", ["event"]), ("start & stop", ["start-stop"]),
        ("serialiser", ["serializer"])]
SIZES = [1_000, 10_000, 100_000, 1_000_000]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", default=os.path.join(HERE, "runtime.md"))
    return parser.parse_args()


def build():
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "prony-cli"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "prony-runtime", "--example", "event_ping"], cwd=ROOT,
                   check=True)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(target, "release", "prony"), os.path.join(target, "release", "examples", "event_ping")


def start(prony, words, cores, threads=1):
    command = ["taskset", "-c", cores, prony, "bench", *words, "--threads", str(threads), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def result(child):
    out, err = child.communicate()
    if child.returncode != 0:
        sys.exit(f"{' '.join(child.args)} ended with {child.returncode}\n{err.decode()}")
    return json.loads(out)


def one(prony, words, cores="0", threads=1):
    return result(start(prony, words, cores, threads))


def works(prony, rounds):
    """Rounds in turn: one of each work, then the next round."""
    seen = {title: [] for title, *_ in WORKS}
    for _ in range(rounds):
        for title, words, *_ in WORKS:
            seen[title].append(one(prony, words))
    for title, _, unit, asked, met in WORKS:
        lines = seen[title]
        times = [line["elapsed_ns"] / 1e6 for line in lines]
        per_ms = lines[0]["bytes"] / 1e3 if unit == "MB/s" else lines[0]["count"] / 1e3
        best, median = min(times), statistics.median(times)
        peak = max(line["peak_bytes"] for line in lines) / 1e6
        cells = [title, f"{lines[0]['count']:,}", f"{median:.1f}", f"{best:.1f}–{max(times):.1f}",
                 f"{per_ms / median:.2f} {unit}" if per_ms / median < 100 else f"{per_ms / median:.0f} {unit}",
                 f"{peak:.0f}", asked, "yes" if met(median, per_ms / median) else
                 ("best only" if met(best, per_ms / best) else "no")]
        yield "| " + " | ".join(cells) + " |"


def growth(prony, rounds):
    """The exponent over all sizes: the slope of log time over log size, a slope a round."""
    slopes, times = [], {size: [] for size in SIZES}
    for _ in range(rounds):
        points = []
        for size in SIZES:
            elapsed = one(prony, ["start", "--count", str(size)])["elapsed_ns"]
            times[size].append(elapsed)
            points.append((math.log(size), math.log(elapsed)))
        mean = [sum(axis) / len(points) for axis in zip(*points)]
        above = sum((x - mean[0]) * (y - mean[1]) for x, y in points)
        slopes.append(above / sum((x - mean[0]) ** 2 for x, _ in points))
    cells = ", ".join(f"{size:,}: {statistics.median(times[size]) / 1e6:.1f} ms" for size in SIZES)
    return (f"Starting and stopping grows with the number of services N as N^{statistics.median(slopes):.2f} "
            f"(from {min(slopes):.2f} to {max(slopes):.2f} in {rounds} rounds; asked: at most 1.1). Medians: {cells}.")


def two(prony, rounds):
    """Two threads of one process against two processes of one thread, in turn."""
    for title, words in BOTH:
        ratios = []
        for _ in range(rounds):
            pair = [start(prony, words, core) for core in "01"]
            apart = max(result(child)["elapsed_ns"] for child in pair)
            ratios.append(apart / one(prony, words, "0,1", 2)["elapsed_ns"])
        median = statistics.median(ratios)
        cells = [title, f"{median:.2f}", f"{min(ratios):.2f}–{max(ratios):.2f}", "yes" if median >= 0.95 else "no"]
        yield "| " + " | ".join(cells) + " |"


def pinged(example, words):
    text = subprocess.run([example, "5000", *words], capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in text.splitlines())


def first_line_of(file, word):
    with open(file, encoding="utf-8") as lines:
        return next((line.split(":")[1].strip() for line in lines if word in line), "unknown")


def document(rounds, load, made):
    table, grown, both, idle, spinning = made
    machine = f"{first_line_of('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, Linux {platform.release()}"
    return "\n".join([
        "# The runtime's speed",
        "",
        "Made by [runtime.py](runtime.py); run it to make this page again on your machine. What each work is:",
        "[subjects/CONTRACT.md](../subjects/CONTRACT.md), chapter Programs. The time is by the program's own clock, from the",
        f"making of the loop to its end, in a fresh process on core 0; median of {rounds} rounds, in which the works take turns.",
        "",
        f"Machine: {machine}; load average before it began: {load:.2f}.",
        "",
        "| work | times | ms, median | ms, range | rate | peak MB | asked | met by the median |",
        "|---|---:|---:|---:|---:|---:|---|---|",
        *table,
        "",
        "Each event is seen by its handler, which adds up the checksum while the clock runs; where there is none, nobody",
        "sees them, and the queue counts.",
        "",
        grown,
        "",
        "## Two threads beside two processes",
        "",
        "Both at the same time, a core for each: rate of one process with two threads ÷ rate of two processes with one",
        "thread each (of which the slower one counts).",
        "",
        "| work | ratio, median | range | at least 0.95 |",
        "|---|---:|---:|---|",
        *both,
        "",
        "## An event to another thread and back",
        "",
        "Beside two threads that wake each other by an eventfd each, in turn; each thread on a core of its own.",
        "",
        "```text",
        idle,
        "```",
        "",
        "Both loops spinning, beside two threads that each spin on a word of memory:",
        "",
        "```text",
        spinning,
        "```",
        "",
    ])


def main():
    chosen = options()
    prony, example = build()
    load = fit.load_before(chosen.out)
    made = (list(works(prony, chosen.rounds)), growth(prony, max(3, chosen.rounds // 2)),
            list(two(prony, chosen.rounds)), pinged(example, []), pinged(example, ["spin"]))
    text = document(chosen.rounds, load, made)
    if chosen.out == "-":
        print(text)
    else:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(text)


main()
