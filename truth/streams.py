"""Latency by stream of HTTP/2 over TLS: what `prony load --trace` says beside the packets, read with the sessions' keys by tshark."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import defaultdict

from accounting import nginx
from instruments import SERVER_CORE, Broken, Exchange, Skipped, has_network_of_its_own, placed, prony_load, read_csv
from latency import DELIVERY_NS, SHARE_MIN, SHARE_MUST, US, Judged, judge_one, percentiles_agree, within_interval
from rows import Figure, at_least_share, is_equal, row

PORT = 9443
DATA, HEADERS, END_STREAM = 0, 1, 1
FIELDS = ("frame.time_epoch", "tcp.srcport", "tcp.dstport", "http2.streamid", "http2.type", "http2.flags")


@contextlib.contextmanager
def captured(file):
    """All packets of the port, with nanoseconds, in a file that is whole when the block ends."""
    words = ["tcpdump", "-i", "lo", "-B", "65536", "-s", "0", "--time-stamp-precision=nano", "-w", file, f"tcp port {PORT}"]
    process = subprocess.Popen(words, preexec_fn=placed(SERVER_CORE), stderr=subprocess.PIPE, text=True)
    try:
        while "listening on" not in (line := process.stderr.readline()):
            if not line:
                raise Broken("tcpdump did not start")
        yield
        # What was captured is handed over once a second at the latest.
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        if "\n0 packets dropped by kernel" not in said:
            raise Broken(f"the capture is not whole: {said}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def frames(file, keys):
    """Of each frame of HTTP/2: when its last segment was on the wire, ports, stream, type and flags."""
    words = ["tshark", "-r", file, "-o", f"tls.keylog_file:{keys}", "-Y", "http2", "-T", "fields", "-E", "aggregator=,"]
    for name in FIELDS:
        words += ["-e", name]
    read = subprocess.run(words, capture_output=True, text=True, preexec_fn=placed(SERVER_CORE))
    if read.returncode != 0:
        raise Broken(f"tshark: {read.stderr.strip()}")
    for line in read.stdout.splitlines():
        when, source, destination, streams, types, flags = line.split("\t")
        seconds, fraction = when.split(".")
        time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
        for stream, kind, flag in zip(streams.split(","), types.split(","), flags.split(","), strict=True):
            yield time_ns, int(source), int(destination), int(stream), int(kind), int(flag, 16)


def exchanges(file, keys):
    """By the client's port, in the order in which answers ended: what was exchanged."""
    begun, by_port = {}, defaultdict(list)
    for time_ns, source, destination, stream, kind, flags in frames(file, keys):
        if destination == PORT and kind == HEADERS:
            begun[source, stream] = time_ns
        elif source == PORT and kind in (DATA, HEADERS) and flags & END_STREAM:
            by_port[destination].append(Exchange(begun[destination, stream], time_ns))
    return by_port


def judge(trace, wire):
    own, by_port = Judged(), defaultdict(list)
    # From the clock of the day to the one that the trace has.
    between = time.time_ns() - time.monotonic_ns()
    for row_ in read_csv(trace):
        by_port[row_["local_port"]].append(row_)
    for port, rows in by_port.items():
        rows.sort(key=lambda of: of["processed_ns"] or 0)
        if len(rows) != len(wire.get(port, [])):
            own.odd.append(f"port {port}: trace {len(rows)}, capture {len(wire.get(port, []))}")
            continue
        for row_, seen in zip(rows, wire[port]):
            if row_["last_byte_ns"] is None:
                continue
            judge_one(own, row_, Exchange(seen.request - between, seen.answer - between), None, None)
    return own


@contextlib.contextmanager
def kept_keys(file):
    os.environ["SSLKEYLOGFILE"] = file
    try:
        yield
    finally:
        del os.environ["SSLKEYLOGFILE"]


def streams(name, words):
    @row(name, 8)
    def run(folder):
        for tool, package in (("tcpdump", "tcpdump"), ("tshark", "tshark"), ("openssl", "openssl")):
            if not shutil.which(tool):
                raise Skipped(f"needs {tool}: apt-get install {package}")
        if not has_network_of_its_own():
            raise Skipped("needs a network namespace of its own (root, or user namespaces)", "namespaces")
        file, keys = os.path.join(folder, "packets"), os.path.join(folder, "keys")
        with nginx(folder, PORT, tls=True), captured(file), kept_keys(keys):
            load = prony_load(folder, f"https://127.0.0.1:{PORT}/hello", "--insecure", "--http2", *words, "--latency-from", "submitted",
                              trace=True)
        wire = exchanges(file, keys)
        own = judge(load.trace_file, wire)
        sent = load.report["counts"]["sent"]
        yield is_equal("sent", "streams in the capture", sent, sum(len(of) for of in wire.values()))
        yield Figure("requests in trace and capture", str(len(own.shown)), "> 0, all ports agree" +
                     "".join(f"; {odd}" for odd in own.odd[:2]), bool(own.shown) and not own.odd)
        if not own.shown:
            return
        not_under, not_over = within_interval(own, DELIVERY_NS)
        yield at_least_share("capture ≤ shown", not_under, 1.0)
        yield at_least_share(f"shown ≤ capture + stated bound + {DELIVERY_NS // US} µs of the kernel's delivery", not_over, SHARE_MIN,
                             SHARE_MUST)
        yield from percentiles_agree(own, load.report, kernel=False)


streams("streams/closed", ["-c", 4, "--streams", 10, "-d", "2s"])
streams("streams/open", ["-c", 4, "--streams", 10, "-d", "2s", "--rate", 2000])
