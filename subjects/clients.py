#!/usr/bin/env python3
"""Builds the subjects that are clients, runs each against a peer for a second, and holds what it says against what the
peer counted.

    clients.py [LANGUAGE/NAME …] [--build DIR] [--prony PATH] [--measure]

Without names: all subjects with a `[client]`. Each is run in all variants of its build, with 1 and 10 connections on one
thread and 10 on two: the line that it prints, the counts of both sides, the latencies. Then against answers that come in
pieces, and against answers that are 404. The peer is nginx where there is one, otherwise a small server in here.
`--measure` checks nothing: it prints rates and CPU times, server and client on a core of their own each.
Needs Python 3.11 or newer, and nothing else that the subjects do not need.
Exit status: 0 all checks hold; 1 not so; 2 usage; 3 nothing wrong, but some were not run here.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True  # a check leaves nothing in the tree
import described  # noqa: E402
from programs import NotRun, Wrong, build, check_needs, expect, fill, variants  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
HOST = "127.0.0.1"
PAGE = "/hello_world.html"
SECONDS = 1
# Where a client had no answer within that time, it gets more: a machine may be busy with something else.
PATIENT_SECONDS = 10
TIMEOUT_S = 60
# (connections in all, threads)
CELLS = [(1, 1), (10, 1), (10, 2)]
MEASURED = [(10, 1), (100, 1)]
ROUNDS = 3
DOWNLOAD_BYTES = 1 << 20
# More than all connections together can have been busy, by the rounding of what tools print.
LITTLE = 1.02
PERCENTILES = ["min", "p50", "p75", "p90", "p99", "p99_9", "p99_99", "max"]


class SmallServer:
    """Answers every GET with one page and counts exactly; a thread with a loop of its own."""

    def __init__(self, status="200 OK", pieces=False):
        self.requests, self.bytes, self.status, self.pieces = 0, 0, status, pieces
        self.body = b"Hello, World!"
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, HOST, 0, backlog=1024))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def answer(self, head):
        """The pieces of an answer. Chunks are for those who speak HTTP/1.1."""
        http10 = head.startswith(b"GET") and b" HTTP/1.0\r\n" in head
        fields = [f"HTTP/1.{0 if http10 else 1} {self.status}", "Content-Type: text/plain"]
        fields += ["Connection: keep-alive"] if http10 else []
        if not self.pieces or http10:
            fields.append(f"Content-Length: {len(self.body)}")
            return ["\r\n".join(fields).encode() + b"\r\n\r\n" + self.body]
        chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (self.body[:5], self.body[5:])]
        whole = "\r\n".join([*fields, "Transfer-Encoding: chunked"]).encode() + b"\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n"
        at = self.requests % (len(whole) - 1) + 1
        return [whole[:at], whole[at:]]

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                for piece in self.answer(head):
                    writer.write(piece)
                    await writer.drain()
                    # Another connection's turn, so that the pieces leave one by one.
                    await asyncio.sleep(0)
        writer.close()

    def count(self):
        return self.requests

    def page_bytes(self):
        return len(self.body)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.server.close()
        self.loop.close()


class Peer:
    """The subject c/nginx, by its own start and counts."""

    def __init__(self, folder, work, core=None, payload_bytes=DOWNLOAD_BYTES):
        self.subject = described.load(folder)
        self.readings = 0
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = probe.getsockname()[1]
        values = {"dir": str(folder), "work": str(work), "host": HOST, "port": str(self.port), "threads": "1"}
        values["payload_bytes"] = str(payload_bytes)
        command = fill(self.subject["start"]["cmd"], values)
        pin = [] if core is None else ["taskset", "-c", str(core)]
        self.process = subprocess.Popen(
            pin + command, stdin=subprocess.DEVNULL, start_new_session=True, env=described.environment("trials")
        )
        deadline = time.monotonic() + self.subject["ready"]["timeout_s"]
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Wrong("the peer did not become ready")
            time.sleep(0.02)

    def get(self, path):
        with urllib.request.urlopen(f"http://{HOST}:{self.port}{path}", timeout=5) as answer:
            return answer.read()

    def answers(self):
        with contextlib.suppress(OSError):
            return bool(self.get(self.subject["ready"]["http"]))
        return False

    def count(self):
        """Requests so far, without its readings of them."""
        counts = self.subject["counts"]
        # Rust's way to name a group, as the lab reads it.
        pattern = counts["requests"].replace("(?<requests>", "(?P<requests>")
        reported = int(re.search(pattern, self.get(counts["path"]).decode())["requests"])
        self.readings += counts["own_requests"]
        return reported - self.readings

    def page_bytes(self):
        return len(self.get(PAGE))

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(10)


@dataclasses.dataclass
class Client:
    """A client as it was built: one choice of its variants."""

    name: str
    subject: dict
    values: dict

    @property
    def told(self):
        return self.subject["client"]

    def label(self):
        choice = [self.values[name] for name in self.subject.get("variants", {})]
        return " ".join([self.name, *choice])

    def words(self, port, path, connections, threads, seconds):
        return self.values | {
            "url": f"http://{HOST}:{port}{path}", "host": HOST, "port": str(port), "path": path,
            "threads": str(threads), "connections": str(connections),
            "connections_per_thread": str(connections // threads), "seconds": str(seconds),
            "payload_bytes": str(DOWNLOAD_BYTES),
        }  # fmt: skip

    def run(self, words, core=None):
        """One run: the line that it prints, and the CPU time of the client alone."""
        environment = described.environment("trials")
        environment |= dict(zip(self.told.get("env", {}), fill(self.told.get("env", {}).values(), words)))
        pin = [] if core is None else ["taskset", "-c", str(core)]
        command = pin + fill(self.told["cmd"], words)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=environment
            )
            timer = threading.Timer(TIMEOUT_S, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            errors.seek(0)
            text, said = out.read().decode(), errors.read().decode(errors="replace").strip()[-300:]
        expect(process.returncode == 0, f"ended with {process.returncode}: {said or text[-300:]}")
        return self.line(text, words), usage.ru_utime + usage.ru_stime

    def line(self, text, words):
        if "translate" in self.told:
            done = subprocess.run(
                fill(self.told["translate"], words), input=text, capture_output=True, text=True, timeout=TIMEOUT_S
            )
            expect(done.returncode == 0, f"translate ended with {done.returncode}: {done.stderr.strip()[-300:]}")
            text = done.stdout
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        lines = [line for line in lines if "measure" in line]
        expect(len(lines) == 1, f"{len(lines)} lines of JSON instead of one")
        return lines[0]


def check_latency(latency, answered, connections, elapsed_ns):
    """Order, and that no more requests were under way than there are connections. What is 0 was not given."""
    given = [latency[name] for name in PERCENTILES if latency[name]]
    expect(given == sorted(given), f"latencies are not in order: {latency}")
    expect(latency["max"] and latency["count"] >= answered, f"latencies of {latency['count']}, not {answered}")
    if latency["mean"]:
        expect(latency["min"] <= latency["mean"] <= latency["max"], f"the mean is not between least and greatest: {latency}")
        busy = answered * latency["mean"] / elapsed_ns
        expect(busy <= connections * LITTLE, f"{busy:.2f} requests under way on {connections} connections")


def check_line(line, connections, threads, seconds):
    told = line["client"]
    expect(line["measure"] == "requests", f"measure is {line['measure']!r}")
    expect(line["threads"] == threads, f"threads is {line['threads']!r}, not {threads}")
    expect(told["connections"] == connections, f"connections is {told['connections']!r}, not {connections}")
    expect(sum(told["failed_by_kind"].values()) == told["failed"], f"failures do not add up: {told}")
    low, high = seconds * 9e8, seconds * 1e10
    expect(low <= line["elapsed_ns"] <= high, f"elapsed_ns is {line['elapsed_ns']}")
    in_flight = told.get("in_flight")
    expect(in_flight is None or 0 <= in_flight <= connections, f"in_flight is {in_flight}")


def check_counts(line, served, connections):
    """The peer has counted what was answered, what failed and what was under way."""
    told = line["client"]
    over = served - line["count"] - told["failed"]
    in_flight = told.get("in_flight")
    if in_flight is None:
        expect(0 <= over <= connections, f"the peer counted {over:+} beside {line['count']} answers")
    else:
        expect(over == in_flight, f"the peer counted {over:+} beside {line['count']} answers, not {in_flight}")


def check_bytes(line, page_bytes, connections):
    """Bodies only; those of answers under way may be among them."""
    if line["bytes"]:
        least = line["count"] * page_bytes
        most = least + connections * page_bytes
        expect(least <= line["bytes"] <= most, f"{line['bytes']} bytes of {line['count']} answers of {page_bytes}")


def cells(client):
    most = client.told.get("threads_max")
    return [(connections, threads) for connections, threads in CELLS if most is None or threads <= most]


def settled(peer):
    """Its count once that stands still: what a client left behind is read by the peer a moment later."""
    before = None
    for _ in range(100):
        now = peer.count()
        if now == before:
            return now
        before = now
        time.sleep(0.02)
    raise Wrong("the peer's count does not come to rest")


def check_requests(client, peer, wanted):
    for connections, threads in wanted:
        for seconds in (SECONDS, PATIENT_SECONDS):
            before = settled(peer)
            line, _ = client.run(client.words(peer.port, PAGE, connections, threads, seconds))
            served = settled(peer) - before
            if line["count"] > 0:
                break
        try:
            check_line(line, connections, threads, seconds)
            check_counts(line, served, connections)
            expect(line["count"] > 0 and line["client"]["failed"] == 0, f"{line['count']} answers, {line['client']}")
            check_bytes(line, peer.page_bytes(), connections)
            if line["client"].get("latency"):
                check_latency(line["client"]["latency"], line["count"], connections, line["elapsed_ns"])
        except (Wrong, KeyError, TypeError) as reason:
            raise Wrong(f"{client.label()}, {connections} connections, {threads} threads: {reason!r}") from None


def check_status(client):
    """Answers that are 404 are failures."""
    server = SmallServer(status="404 Not Found")
    try:
        for seconds in (SECONDS, PATIENT_SECONDS):
            before = settled(server)
            line, _ = client.run(client.words(server.port, PAGE, 2, 1, seconds))
            served = settled(server) - before
            if line["count"] > 0 or line["client"]["failed"] > 0:
                break
        check_counts(line, served, 2)
        expect(line["count"] == 0 and line["client"]["failed"] > 0, f"of answers with 404: {line}"[:300])
        expect("status" in line["client"]["failed_by_kind"], f"not counted as `status`: {line['client']}")
    finally:
        server.stop()


def check_pieces(client):
    """Chunks, cut at every byte."""
    server = SmallServer(pieces=True)
    try:
        check_requests(client, server, [(3, 1)])
    finally:
        server.stop()


def check_downloads(client, peer):
    for connections in (1, 10):
        words = client.words(peer.port, "/testpayload", connections, 1, SECONDS)
        line, _ = client.run(words)
        agreed = {"measure": "downloads", "count": connections, "bytes": connections * DOWNLOAD_BYTES}
        for name, value in agreed.items():
            expect(line[name] == value, f"{client.label()}: {name} is {line[name]!r}, not {value!r}")
        expect(line["client"]["connections"] == connections, f"connections is {line['client']['connections']}")
        expect(line["client"]["failed"] == 0, f"{line['client']['failed']} downloads failed")


def check(client, peer):
    works = client.told["works"]
    if "requests" in works:
        check_requests(client, peer, cells(client))
        check_pieces(client)
        check_status(client)
    if "downloads" in works:
        check_downloads(client, peer)


def prepare(name, folder, build_folder, prony):
    """Builds a subject and returns its clients, one for each choice of its variants."""
    subject = described.load(folder)
    expect(subject["name"] == folder.name, f"its name is {subject['name']}, its folder is {folder.name}")
    check_needs(subject["needs"])
    missing = [path for path in subject["needs"].get("files", []) if not os.path.exists(path)]
    if missing:
        raise NotRun(f"missing: {', '.join(missing)}")
    values = {"dir": str(folder), "build": str(build_folder)} | described.programs(prony)
    if absent := described.missing(subject["client"]["cmd"], values):
        raise NotRun(f"there is no {absent}: give the path of prony with --prony")
    build(subject, folder, values)
    [command] = fill([subject["version"]["cmd"]], values)
    version = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60).stdout.strip()
    expect(version and "\n" not in version, f"its version is not one line: {version!r}")
    return version, [Client(name, subject, values | choice) for choice in variants(subject)]


def measure(clients):
    """Rates and CPU times, the rounds interleaved, the best of them."""
    best = {}
    with tempfile.TemporaryDirectory(prefix="prony-clients-") as work:
        peer = Peer(HERE / "c" / "nginx", work, core=1)
        try:
            for _, (connections, threads), client in itertools.product(range(ROUNDS), MEASURED, clients):
                line, cpu_s = client.run(client.words(peer.port, PAGE, connections, threads, 2), core=0)
                rate = line["count"] / line["elapsed_ns"] * 1e9
                us = cpu_s / max(line["count"], 1) * 1e6
                was = best.get((client.label(), connections), (0.0, us))
                best[client.label(), connections] = (max(rate, was[0]), min(us, was[1]))
        finally:
            peer.stop()
    print(f"{'client':28}" + "".join(f"{f'{c} conn: requests/s':>22}{'CPU us/request':>16}" for c, _ in MEASURED))
    for client in clients:
        columns = (best[client.label(), connections] for connections, _ in MEASURED)
        print(f"{client.label():28}" + "".join(f"{rate:22,.0f}{us:16.2f}" for rate, us in columns))


def start_peer(work):
    """nginx, by its subject; without it, or where it does not count yet, the small server."""
    folder = HERE / "c" / "nginx"
    subject = described.load(folder)
    if shutil.which("nginx") and "counts" in subject:
        return Peer(folder, work)
    return SmallServer()


def all_clients():
    files = sorted(HERE.glob("*/*/subject.toml"))
    return [file.parent for file in files if "client" in described.parse(file.read_text())]


def main():
    parser = argparse.ArgumentParser(description="Check the subjects that are clients.")
    parser.add_argument("subjects", nargs="*", metavar="LANGUAGE/NAME", help="default: all")
    parser.add_argument("--build", metavar="DIR", help="keep what is built here, for the next time (default: a directory that is removed)")
    parser.add_argument("--prony", metavar="PATH", default="prony", help="the prony binary")
    parser.add_argument("--measure", action="store_true", help="print rates and CPU times, and check nothing")
    args = parser.parse_args()
    described.leave_the_rest_behind()
    folders = [HERE / name for name in args.subjects] or all_clients()
    for folder in folders:
        if folder not in all_clients():
            parser.error(f"no subject.toml with a [client] in {folder}")
    worst, measured = 0, []
    with tempfile.TemporaryDirectory(prefix="prony-clients-") as scratch:
        root = pathlib.Path(args.build).resolve() if args.build else pathlib.Path(scratch)
        # For one subject alone the folder is its own.
        own = len(folders) == 1
        for folder in folders:
            name = f"{folder.parent.name}/{folder.name}"
            try:
                version, clients = prepare(name, folder, root if own and args.build else root / name, args.prony)
                if args.measure:
                    measured += [client for client in clients if "requests" in client.told["works"]]
                    continue
                with tempfile.TemporaryDirectory(prefix="prony-peer-") as work:
                    peer = start_peer(work)
                    try:
                        for client in clients:
                            check(client, peer)
                    finally:
                        peer.stop()
                print(f"clients: {name} ok ({version}), {len(clients)} builds")
            except NotRun as reason:
                print(f"clients: {name} not run: {reason}")
                worst = worst or 3
            except (Wrong, KeyError, OSError, ValueError, subprocess.TimeoutExpired) as reason:
                print(f"clients: {name} FAIL: {reason!r}")
                worst = 1
        if measured:
            measure(measured)
    return worst


if __name__ == "__main__":
    sys.exit(main())
