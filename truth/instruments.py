"""Starts the instruments, the servers and the clients, each where it was put, and reads what they wrote."""

import contextlib
import csv
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

TOOLS = os.environ.get("TRUTH_TOOLS", "target/truth")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRONY = os.environ.get("PRONY", "target/release/prony")
# Each side has a processor of its own; what watches shares that of the server, and sleeps meanwhile.
SERVER_CORE, CLIENT_CORE = 0, min(1, os.cpu_count() - 1)
# What else runs on the machine is to take as little from either side as can be had: nothing at all where both sleep most
# of the time and may be in real time; a real-time program that never sleeps is stopped by the kernel now and then.
NICE = -20
REAL_TIME = 1
ENDS_WITHIN_S = 90


class Skipped(Exception):
    """This machine cannot run the row, and why; `what` it lacks, by its name among the exceptions."""
    def __init__(self, why, what=None):
        super().__init__(why)
        self.what = what


class Broken(Exception):
    """What ran did not do what it must do for the row to say anything."""


def placed(core, real_time=False):
    """What a child does before it is the program: goes to its processor, and before others there, where that is allowed."""
    def place():
        os.sched_setaffinity(0, {core})
        os.setsid()
        if real_time:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME))
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
            # Where sessions share the processors out among them, it is the session's own that counts.
            with open("/proc/self/autogroup", "w") as group:
                group.write(str(NICE))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return place


def raise_limits():
    """Lets 10,000 connections come at once and leave; only in a network namespace, whose limits end with it."""
    for name, value in [("core/somaxconn", "65535"), ("ipv4/tcp_max_syn_backlog", "65535"),
                        ("ipv4/ip_local_port_range", "10000 65000"), ("ipv4/tcp_tw_reuse", "1")]:
        with contextlib.suppress(OSError), open(f"/proc/sys/net/{name}", "w") as setting:
            setting.write(value)


def has_network_of_its_own():
    interfaces = os.listdir("/sys/class/net") if os.path.ismount("/sys") else []
    with open("/proc/net/dev") as devices:
        names = [line.split(":")[0].strip() for line in devices if ":" in line]
    return names == ["lo"] or (not names and interfaces == ["lo"])


class Instrument:
    """A program of this folder that says when it is ready and is asked for what it knows by its standard input."""

    def __init__(self, name, *words, real_time=False):
        self.name = name
        self.process = subprocess.Popen([os.path.join(TOOLS, name), *map(str, words)], preexec_fn=placed(SERVER_CORE, real_time),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().split()
        if not self.ready:
            raise Broken(f"{name} did not start: {self.process.stderr.read().strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()

    def end(self):
        """Ends it and returns its last line."""
        out, errors = self.process.communicate(timeout=ENDS_WITHIN_S)
        if self.process.returncode != 0:
            raise Broken(f"{self.name}: {errors.strip()}")
        return out


class Responder(Instrument):
    """responder.c; with `log`, `rows()` are its times by the client's port."""

    def __init__(self, *words, log=None, real_time=False):
        self.log = log
        super().__init__("responder", *words, *(["--log", log] if log else []), real_time=real_time)
        self.port = int(self.ready[1])
        self.url = f"http://127.0.0.1:{self.port}/hello"

    def count(self):
        """Requests, answers and connections, when what was sent before is received."""
        last = None
        while True:
            self.process.stdin.write("count\n")
            self.process.stdin.flush()
            counts = json.loads(self.process.stdout.readline())
            if counts == last:
                return counts
            last = counts
            time.sleep(0.05)

    def rows(self):
        """Ends it: by port, in order, (received, answered) in ns."""
        self.end()
        by_port = defaultdict(list)
        for row in read_csv(self.log):
            by_port[row["local_port"]].append((row["received_ns"], row["answered_ns"]))
        return by_port


@dataclass
class Exchange:
    """A request and its answer as they went over the wire, in ns."""
    request: int
    answer: int


class Capture(Instrument):
    """capture.c on a server's port."""

    def __init__(self, port, file, shift=0):
        if not has_network_of_its_own():
            raise Skipped("needs a network namespace of its own (root, or user namespaces)", "namespaces")
        self.file, self.port = file, port
        super().__init__("capture", "-s", shift, port, file)

    def exchanges(self):
        """Ends it: by port, in order, what was exchanged. A capture that lost packets is none."""
        summary = json.loads(self.end())
        if summary["drops"]:
            raise Broken(f"the capture is not whole: {summary}")
        by_port = defaultdict(list)
        expected = {}
        asking = {}
        for row in read_csv(self.file):
            to_server = row["destination_port"] == self.port
            client = row["source_port"] if to_server else row["destination_port"]
            way = (client, to_server)
            begin = row["sequence"]
            # A segment that was sent before is not sent then.
            if way in expected and (begin - expected[way]) % 2**32 > 2**31:
                continue
            expected[way] = (begin + row["payload_bytes"]) % 2**32
            if to_server and not asking.get(client):
                by_port[client].append(Exchange(row["time_ns"], 0))
                asking[client] = True
            elif not to_server and by_port[client]:
                by_port[client][-1].answer = row["time_ns"]
                asking[client] = False
        return by_port


def read_csv(file):
    """Rows as dictionaries of whole numbers; an empty field is None."""
    with open(file, newline="") as lines:
        reader = csv.reader(lines)
        names = next(reader)
        for fields in reader:
            yield {name: int(field) if field else None for name, field in zip(names, fields)}


@dataclass
class Ended:
    """What became of a client."""
    status: int
    out: str
    errors: str
    cpu_ns: int
    # What VmHWM last was, in bytes; 0 where it was not watched.
    memory_peak: int


def run_client(words, within_s=ENDS_WITHIN_S, meanwhile=None, watch_memory=False, real_time=False):
    """Runs a program to its end. CPU is what the kernel accounts to the finished process (wait4). Its peak memory is
    watched, because that of wait4 begins with this program's own. `meanwhile` is called with its process id."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(word) for word in words], preexec_fn=placed(CLIENT_CORE, real_time), stdout=out,
                                   stderr=errors)
        overdue = threading.Timer(within_s, process.kill)
        overdue.start()
        memory_peak = 0
        try:
            if meanwhile:
                meanwhile(process.pid)
            while watch_memory and (now := high_water(process.pid)) is not None:
                memory_peak = max(memory_peak, now)
                time.sleep(0.02)
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            overdue.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        cpu_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return Ended(process.returncode, out.read(), errors.read(), cpu_ns, memory_peak)


def high_water(pid):
    """Peak resident memory of a process so far in bytes; None when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


class Load(Ended):
    """A run of `prony load`: its report, and its trace where one was asked for."""

    def __init__(self, ended, report, trace):
        super().__init__(**vars(ended))
        self.report, self.trace_file = report, trace

    def trace(self):
        """By local port, in the order of sending: the times of its requests."""
        by_port = defaultdict(list)
        for row in read_csv(self.trace_file):
            by_port[row["local_port"]].append(row)
        for rows in by_port.values():
            rows.sort(key=lambda row: row["submitted_ns"])
        return by_port


def prony_load(folder, url, *words, trace=False, threads=1, may_fail=False, **how):
    report_file, trace_file = os.path.join(folder, "report.json"), os.path.join(folder, "trace.csv")
    for file in (report_file, trace_file):
        with contextlib.suppress(FileNotFoundError):
            os.remove(file)
    given = [PRONY, "load", "-t", threads, *words, "--json", report_file, *(["--trace", trace_file] if trace else []), url]
    ended = run_client(given, **how)
    if not os.path.exists(report_file) or (ended.status != 0 and not may_fail):
        raise Broken(f"{' '.join(map(str, given))} ended with {ended.status}: {ended.errors.strip()} {ended.out.strip()}")
    with open(report_file) as report:
        return Load(ended, json.load(report), trace_file if trace else None)


@contextlib.contextmanager
def watched(folder, *responder_words, real_time=False):
    """A responder that keeps its times and a capture on it."""
    with Responder(*responder_words, log=os.path.join(folder, "server.csv"), real_time=real_time) as server, \
            Capture(server.port, os.path.join(folder, "capture.csv")) as capture:
        yield server, capture


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="truth-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def busy_loop(core):
    """Another program that wants a whole processor, as much as the client there does."""
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=placed(core))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def stopped_in_bursts(stop_s, go_s, bursts):
    """What stops a process for so long again and again, beginning half a second after its start."""
    def stop(pid):
        time.sleep(0.5)
        for _ in range(bursts):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(stop_s)
                os.kill(pid, signal.SIGCONT)
                time.sleep(go_s)
    return stop


QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}


def percentile(ordered, quantile):
    """The smallest value that at least this part of all do not exceed."""
    return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]


def percentiles(values):
    ordered = sorted(values)
    return {name: percentile(ordered, quantile) for name, quantile in QUANTILES.items()} | {"max": ordered[-1]}


def time_of(ns):
    """A time as a reader wants it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.0f} ns"
