#!/usr/bin/env python3
"""The speed of the HTTP client, of downloads by strategy and of `prony fetch`, and writes docs/clients.md.

Client on one core, server on another, everything that is compared in turns within one run. CPU time is what the kernel
says of the ended process (wait4). Needs two cores, curl, and what the subjects cpp/libcurl and rust/reqwest are built with.

    ./docs/clients.py                the page docs/clients.md
    ./docs/clients.py --rounds 3 --only requests --out -

Other programs that run meanwhile spoil it: where the machine does not become idle it measures nothing (fit.py).
"""

import argparse
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time
import tomllib
import urllib.request

sys.dont_write_bytecode = True  # a measurement leaves nothing in the tree
import fit  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
SERVER_CORE, CLIENT_CORE = "0", "1"
GIB = 1 << 30


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="of each run of requests")
    parser.add_argument("--only", choices=["requests", "downloads", "fetch"])
    parser.add_argument("--out", default=str(HERE / "clients.md"))
    return parser.parse_args()


def build_prony():
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "prony-cli"], cwd=ROOT, check=True)
    return os.path.join(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release", "prony")


def fill(text, values):
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


class Subject:
    """A client of `subjects/`, built."""

    def __init__(self, ref, prony, **variants):
        self.dir = ROOT / "subjects" / ref
        self.toml = tomllib.loads((self.dir / "subject.toml").read_text())
        self.values = {"dir": self.dir, "build": ROOT / ".prony" / "docs-clients" / ref.replace("/", "-"), "prony": prony}
        self.values |= variants
        os.makedirs(self.values["build"], exist_ok=True)
        if "build" in self.toml:
            quoted = {name: shlex.quote(str(value)) for name, value in self.values.items()}
            subprocess.run(["sh", "-c", fill(self.toml["build"]["cmd"], quoted)], cwd=self.dir, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def requests(self, port, connections, seconds):
        """One run on one thread: requests a second, and microseconds of CPU time for each."""
        values = self.values | {
            "url": f"http://127.0.0.1:{port}/hello_world.html", "host": "127.0.0.1", "port": port,
            "path": "/hello_world.html", "threads": 1, "connections": connections,
            "connections_per_thread": connections, "seconds": seconds, "payload_bytes": 0,
        }
        client = self.toml["client"]
        env = {name: fill(value, values) for name, value in client.get("env", {}).items()}
        said, cpu = pinned([fill(word, values) for word in client["cmd"]], env)
        if "translate" in client:
            words = [fill(word, values) for word in client["translate"]]
            said = subprocess.run(words, input=said, capture_output=True, check=True).stdout
        line = next(line for text in said.splitlines() if "measure" in (line := json.loads(text)))
        return line["count"] / line["elapsed_ns"] * 1e9, cpu / line["count"] * 1e6


def pinned(command, env=None):
    """What a command prints on the client's core, and its CPU time in seconds."""
    words = ["taskset", "-c", CLIENT_CORE, *map(str, command)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, env=os.environ | (env or {}))
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {child.returncode}")
    return said, usage.ru_utime + usage.ru_stime


class Server:
    """`prony serve` on the server's core."""

    def __init__(self, prony, *words):
        command = ["taskset", "-c", SERVER_CORE, prony, "serve", "--port", "0", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def __enter__(self):
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/hello").read()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def median_ratio(ours, theirs):
    """Of the pairs of each round: they ran one after the other."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def met(value, asked, at_least):
    return f"{value:.2f}" + ("" if (value >= asked if at_least else value <= asked) else " (not reached)")


def requests(prony, rounds, seconds):
    clients = {
        "prony-client": Subject("rust/prony-client", prony),
        "prony-load": Subject("rust/prony-load", prony),
        "libcurl, lift's manner": Subject("cpp/libcurl", prony, style="lift"),
        "libcurl, tuned": Subject("cpp/libcurl", prony, style="tuned"),
        "reqwest": Subject("rust/reqwest", prony),
        "wrk": Subject("c/wrk", prony),
    }
    text, seen = "", {}
    with Server(prony) as server:
        for _ in range(rounds):
            for connections in (10, 100):
                for name, client in clients.items():
                    seen.setdefault((name, connections), []).append(client.requests(server.port, connections, seconds))
    rates = {key: [rate for rate, _ in runs] for key, runs in seen.items()}
    cpus = {key: [cpu for _, cpu in runs] for key, runs in seen.items()}
    rows = []
    for name in clients:
        for connections in (10, 100):
            key = name, connections
            rows.append([name, connections, f"{statistics.median(rates[key]) / 1e3:.1f}",
                         f"{statistics.median(cpus[key]):.2f}", f"{min(cpus[key]):.2f}–{max(cpus[key]):.2f}"])
    text += table(["client", "connections", "thousand requests/s", "CPU µs a request", "range"], rows) + "\n"
    rows = []
    for connections in (10, 100):
        ours = "prony-client", connections
        for other, rate, cpu in (("libcurl, lift's manner", 2.5, 0.4), ("libcurl, tuned", None, None), ("reqwest", 1.5, 0.65)):
            rate_ratio = median_ratio(rates[ours], rates[other, connections])
            cpu_ratio = median_ratio(cpus[ours], cpus[other, connections])
            rows.append([f"requests/s beside {other}, {connections} connections", f"≥ {rate}" if rate else "–",
                         met(rate_ratio, rate or 0, True)])
            rows.append([f"CPU a request beside {other}, {connections} connections", f"≤ {cpu}" if cpu else "–",
                         met(cpu_ratio, cpu or 99, False)])
        rows.append([f"CPU a request beside `prony load`, {connections} connections", "≤ 1.25",
                     met(median_ratio(cpus[ours], cpus["prony-load", connections]), 1.25, False)])
    return "## Requests\n\n" + text + table(["ratio, median of the rounds' pairs", "asked", "reached"], rows)


def io(prony, port, *words):
    command = [prony, "bench", "io", "127.0.0.1", port, "--json", "--iterations", "1", *words]
    said, _ = pinned(command)
    line = json.loads(said)
    tallies = line["tallies"]
    cpu = (tallies["user_ns"] + tallies["system_ns"]) / 1e9
    return {"rate": line["bytes"] / line["elapsed_ns"] * 1e9 / (1 << 20), "cpu": cpu / line["bytes"] * GIB,
            "memory": line["figures"]["pss_bytes"]["mean"] / (1 << 20), "peak": tallies["peak_rss_bytes"] / (1 << 20)}


STRATEGIES = {
    "threads": ["--strategy", "threads"],
    "poll, 64 KiB": ["--strategy", "poll", "--buffer", "64KiB"],
    "epoll": ["--strategy", "epoll"],
    "ring, one-shot": ["--strategy", "ring", "--receive", "oneshot"],
    "ring, multishot": ["--strategy", "ring", "--receive", "multishot"],
    "poll, discarded": ["--strategy", "poll", "--buffer", "64KiB", "--discard"],
    "epoll, discarded": ["--strategy", "epoll", "--discard"],
    "threads, discarded": ["--strategy", "threads", "--discard"],
    "ring, discarded": ["--strategy", "ring", "--discard"],
}


def downloads(prony, rounds):
    seen = {name: [] for name in STRATEGIES}
    with Server(prony, "--payload", "200MiB") as server:
        for _ in range(rounds):
            for name, words in STRATEGIES.items():
                seen[name].append(io(prony, server.port, "--connections", "100", *words))
    values = {(name, what): [run[what] for run in runs] for name, runs in seen.items() for what in runs[0]}
    rows = [[name, *(f"{statistics.median(values[name, what]):.{digits}f}"
                     for what, digits in (("rate", 0), ("cpu", 3), ("memory", 1), ("peak", 1)))] for name in STRATEGIES]
    text = table(["strategy", "MiB/s", "CPU s/GiB", "mean Pss, MiB", "peak resident, MiB"], rows) + "\n"
    ratio = lambda one, other, what: median_ratio(values[one, what], values[other, what])
    ring, poll = "ring, multishot", "poll, 64 KiB"
    rows = [
        ["MiB/s of ring multishot beside poll with 64 KiB", "≥ 1.05", met(ratio(ring, poll, "rate"), 1.05, True)],
        ["CPU of the same", "≤ 1.0", met(ratio(ring, poll, "cpu"), 1.0, False)],
        ["memory of ring multishot, MiB", "≤ 16", met(max(values[ring, "memory"]), 16, False)],
    ]
    pairs = (("threads", "threads, discarded"), (poll, "poll, discarded"), ("epoll", "epoll, discarded"),
             (ring, "ring, discarded"))
    for plain, discarded in pairs:
        rows.append([f"CPU per GiB: {discarded} beside {plain}", "≤ 0.40", met(ratio(discarded, plain, "cpu"), 0.40, False)])
    note = "\nWhat is discarded in the kernel is counted, not seen: no byte of a body reaches the program.\n"
    return "## Downloads by strategy, 100 × 200 MiB\n\n" + text + table(["what", "asked", "reached"], rows) + note


def fetch(prony, rounds):
    seen = {"prony": [], "curl": []}
    with Server(prony, "--payload", "1GiB") as server:
        url = f"http://127.0.0.1:{server.port}/testpayload"
        for _ in range(rounds):
            for name, command in (("prony", [prony, "fetch", "-q", "-o", "/dev/null", url]),
                                  ("curl", ["curl", "-s", "-o", "/dev/null", url])):
                began = time.monotonic()
                _, cpu = pinned(command)
                seen[name].append((1024 / (time.monotonic() - began), cpu))
    rows = [[name, f"{statistics.median(rate for rate, _ in runs):.0f}", f"{statistics.median(cpu for _, cpu in runs):.3f}"]
            for name, runs in seen.items()]
    ratio = median_ratio([rate for rate, _ in seen["prony"]], [rate for rate, _ in seen["curl"]])
    return ("## A download of 1 GiB over one connection\n\n" + table(["command", "MiB/s", "CPU s/GiB"], rows)
            + f"\n`prony fetch` beside `curl -o /dev/null`, MiB/s, start of the process included: {met(ratio, 1.0, True)}"
            + " (asked: ≥ 1.0).\n")


def main():
    words = options()
    prony = build_prony()
    load = fit.load_before(words.out)
    parts = {"requests": lambda: requests(prony, words.rounds, words.seconds), "downloads": lambda: downloads(prony, words.rounds),
             "fetch": lambda: fetch(prony, words.rounds)}
    chosen = [words.only] if words.only else list(parts)
    page = "# Speed of the client, of downloads and of `prony fetch`\n\n"
    page += (f"Made by [clients.py](clients.py): {words.rounds} rounds in turn, medians; client and server on a core each of"
             f" {os.cpu_count()}, loopback, Linux {platform.release()}, {platform.machine()}. The load average before it was"
             f" {load:.2f}. The server is `prony serve`. Every ratio is one of pairs that ran one after the other.\n\n")
    page += "\n".join(parts[name]() for name in chosen)
    if words.out == "-":
        sys.stdout.write(page)
    else:
        pathlib.Path(words.out).write_text(page)


if __name__ == "__main__":
    main()
