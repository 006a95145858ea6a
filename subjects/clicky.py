#!/usr/bin/env python3
"""Builds the click counters, starts each with every backend, and holds it to its chapter of CONTRACT.md. Backing services
and fronts (`backing/NAME`, `front/NAME`) are held to theirs.

    clicky.py [LANGUAGE/NAME …] [--build DIR] [--prony PATH] [--seed SEED]

Without names: all of them. The answers, what is refused, bodies in pieces at every byte, the fields for other origins, the
log; one counter for all workers; SIGTERM under load and a new start, after which everything that was acknowledged must be
there; a store that fails and comes back; two instances on one Redis, and a Redis that loses everything.
Needs Python 3.11 or newer, redis-server, and nothing else that the subjects do not need. It measures nothing.
Exit status: 0 all checks hold; 1 not so; 2 usage; 3 nothing wrong, but some were not run here.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # a check leaves nothing in the tree
import described  # noqa: E402
import processes  # noqa: E402
from programs import NotRun, Wrong, build, check_needs, expect, fill, variants  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
HOST = "127.0.0.1"
KEY = "CLICKY_COUNTER"
THREADS = 2
CLICKS_MAX = 500
STOP_S = 5
TIMEOUT_S = 5
# Long enough for whatever comes to pass by itself, such as the next turn of a keeper.
SETTLE_S = 10
POLL_S = 0.02
SYNC_S = 0.1
# Between two pieces of a request: long enough for a server on the same machine to read the first one alone.
PIECE_GAP_S = 0.001
HUGE_BYTES = 10_000_000
STOPS = 3

BAD_BODIES = [
    b"", b"-1", b"501", b"999", b"1000", b"65536", b"18446744073709551617", b"1e2", b" 5", b"5 ", b"5\n", b"+5", b"0x1", b"1.0",
    b"1_0", b"abc", b"5a", b"\x00", b"\xff\xfe", "٥".encode(), b'{"clicks":5}', b"5" * 64,
]  # fmt: skip
ENVIRONMENT = described.environment("trials")


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def number(self):
        expect(self.status == 200, f"status {self.status} instead of a number")
        expect(self.body.isdigit(), f"no number: {self.body[:60]!r}")
        return int(self.body)


class Connection:
    """One connection that requests are sent on as they are written."""

    def __init__(self, port):
        self.socket = socket.create_connection((HOST, port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader.close()
        self.socket.close()

    def answer(self, head_only=False):
        """The next answer; ConnectionError if there is none."""
        line = self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("closed without an answer")
        fields = {}
        while (field := self.reader.readline()) not in (b"\r\n", b"\n"):
            if not field.endswith(b"\n"):
                raise ConnectionError("cut within the head")
            name, _, value = field.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        body = b"" if head_only else self.body(fields)
        return Answer(int(line.split()[1]), fields, body)

    def body(self, fields):
        if fields.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.reader.readline().strip() or b"0", 16):
                parts.append(self.exactly(size))
                self.reader.readline()
            self.reader.readline()
            return b"".join(parts)
        return self.exactly(int(fields.get("content-length", 0)))

    def exactly(self, size):
        got = self.reader.read(size)
        if len(got) != size:
            raise ConnectionError("cut within the body")
        return got

    def ask(self, request):
        self.socket.sendall(request)
        return self.answer(head_only=request.startswith(b"HEAD "))


def request(method, path="/", body=None, fields=()):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *fields]
    if body is not None:
        lines += ["Content-Type: text/plain", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def post(clicks):
    return request("POST", body=str(clicks).encode())


def free_port():
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


def until(true, what):
    """Waits until something holds, for as long as things may take that come to pass by themselves."""
    deadline = time.monotonic() + SETTLE_S
    while not true():
        expect(time.monotonic() < deadline, what)
        time.sleep(POLL_S)


class Process:
    """A subject that runs, by its [start]; its standard output and error in one file."""

    def __init__(self, subject, values, work, env=None, args=(), port=None):
        self.subject, self.port = subject, port or free_port()
        self.log = work / f"log-{self.port}"
        words = values | {
            "host": HOST, "port": str(self.port), "threads": str(THREADS), "work": str(work), "instance": "0", "payload_bytes": "0",
        }  # fmt: skip
        words |= {"upstreams": values.get("upstreams", "")}
        start = subject["start"]
        told = dict(zip(start.get("env", {}), fill(start.get("env", {}).values(), words)))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                fill(start["cmd"], words) + list(args), cwd=work, env=ENVIRONMENT | told | (env or {}),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def __enter__(self):
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        self.kill()

    def said(self):
        return self.log.read_text(errors="replace")

    def is_ready(self):
        with contextlib.suppress(OSError), Connection(self.port) as connection:
            path = self.subject["ready"].get("http")
            return path is None or connection.ask(request("GET", path)).status == 200
        return False

    def wait_ready(self):
        deadline = time.monotonic() + self.subject["ready"]["timeout_s"]
        while not self.is_ready():
            status = self.process.poll()
            expect(status is None, f"ended with status {status} before it was ready: {self.said()[-300:]}")
            expect(time.monotonic() < deadline, f"was not ready in time: {self.said()[-300:]}")
            time.sleep(POLL_S)

    def stop(self):
        """Ends it by SIGTERM, as agreed: in time, with status 0, and whole."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"still there {STOP_S} s after SIGTERM") from None
        expect(status in (0, -signal.SIGTERM), f"ended with status {status} after SIGTERM: {self.said()[-300:]}")
        until(lambda: not processes.of_group(self.process.pid), "left a process behind")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ask(self, wanted):
        with Connection(self.port) as connection:
            return connection.ask(wanted)

    def count(self):
        return self.ask(request("GET")).number()


class Redis:
    """The backing service backing/redis, and what one asks of it."""

    def __init__(self, work, name="redis", args=()):
        folder = HERE / "backing" / name
        self.subject = described.load(folder)
        check_needs(self.subject["needs"])
        self.values, self.work, self.args, self.port = {"dir": str(folder)}, work, args, free_port()
        work.mkdir(exist_ok=True)
        self.start()

    def start(self):
        self.process = Process(self.subject, self.values, self.work, args=self.args, port=self.port)
        self.process.__enter__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()

    def ask(self, *words):
        """The answer to a command, without its sign."""
        command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
        with socket.create_connection((HOST, self.port), timeout=TIMEOUT_S) as asked, asked.makefile("rb") as reader:
            asked.sendall(command)
            line = reader.readline().decode().strip()
            return reader.readline().decode().strip() if line.startswith("$") and line != "$-1" else line[1:]

    def env(self):
        return {"CLICKY_BACKEND": "redis", "CLICKY_REDIS_URL": f"redis://{HOST}:{self.port}"}


class Counter:
    """A click counter as it was built: one choice of its variants."""

    def __init__(self, name, subject, values):
        self.name, self.subject, self.values = name, subject, values

    def start(self, work, backend="none", **env):
        env = {"CLICKY_BACKEND": backend, "CLICKY_SYNC_FREQUENCY": f"{SYNC_S * 1000:.0f}ms"} | env
        return Process(self.subject, self.values, work, env)


class Load(threading.Thread):
    """Posts on one connection until it breaks; what was acknowledged, and what was sent without an answer."""

    def __init__(self, port, seed):
        super().__init__()
        self.port, self.random = port, random.Random(seed)
        self.acknowledged, self.unanswered, self.totals = 0, 0, []

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                with Connection(self.port) as connection:
                    self.post_on(connection)

    def post_on(self, connection):
        while True:
            clicks = self.random.randint(1, CLICKS_MAX)
            self.unanswered += clicks
            answer = connection.ask(post(clicks))
            if answer.status != 200:
                # Refused because it is about to end: neither acknowledged nor, for all that one can know, counted.
                return
            self.unanswered -= clicks
            self.acknowledged += clicks
            self.totals.append(answer.number())
            if answer.fields.get("connection", "").lower() == "close":
                return


def check_answers(counter, work):
    with counter.start(work) as service, Connection(service.port) as connection:
        total = 0
        first = connection.ask(request("GET"))
        expect(first.number() == 0, f"begins with {first.body[:60]!r}")
        kind = first.fields.get("content-type", "")
        expect(kind.split(";")[0] == "text/plain", f"the count is {kind or 'of no type'}")
        for clicks in [0, 1, 7, 42, 499, CLICKS_MAX]:
            total += clicks
            expect(connection.ask(post(clicks)).number() == total, f"after a post of {clicks} the total is not {total}")
        pieces = b"".join(b"1\r\n%c\r\n" % digit for digit in b"500") + b"0\r\n\r\n"
        chunked = connection.ask(request("POST", fields=["Content-Type: text/plain", "Transfer-Encoding: chunked"]) + pieces)
        total += 500
        expect(chunked.number() == total, "a body in chunks was not added")
        plain = connection.ask(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1\r\n\r\n5".encode())
        total += 5
        expect(plain.number() == total, "a body without a type was not added")
        expect(service.count() == total, f"GET does not say {total}")
        for method, path, right in [("GET", "/nothing", [404]), ("PUT", "/", [404, 405]), ("DELETE", "/", [404, 405])]:
            answer = service.ask(request(method, path, body=b"1" if method == "PUT" else None))
            expect(answer.status in right, f"{method} {path} is answered with {answer.status}")
        service.stop()


def check_refused(counter, work):
    """Whatever is not a number from 0 to 500 is refused, adds nothing and harms nothing."""
    with counter.start(work) as service:
        for body in BAD_BODIES:
            answer = service.ask(request("POST", body=body))
            expect(answer.status == 400, f"{body[:40]!r} is answered with {answer.status}, not 400")
        for fields in (["Transfer-Encoding: chunked"], [f"Content-Length: {HUGE_BYTES}"]):
            status = send_huge(service.port, fields)
            expect(status in (400, 413, None), f"a body of {HUGE_BYTES} bytes is answered with {status}")
        for length in ("x", "-1", "1, 2"):
            with contextlib.suppress(ConnectionError):
                status = service.ask(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\n\r\n5".encode()).status
                expect(400 <= status < 500, f"Content-Length: {length} is answered with {status}")
        with Connection(service.port) as cut:
            cut.socket.sendall(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 3\r\n\r\n50".encode())
        expect(service.count() == 0, "what was refused was counted")
        service.stop()


def send_huge(port, fields):
    """The status of the answer to a body that is far too long; None if the connection was closed on it."""
    chunk = b"5" * 10_000
    framed = chunk if fields[0].startswith("Content") else b"%x\r\n" % len(chunk) + chunk + b"\r\n"
    with Connection(port) as connection:
        # The server need not read on once it has refused; then writing fails, and the answer may be lost with it.
        with contextlib.suppress(ConnectionError):
            connection.socket.sendall(request("POST", fields=["Content-Type: text/plain", *fields]))
            for _ in range(HUGE_BYTES // len(chunk)):
                connection.socket.sendall(framed)
            if framed is not chunk:
                connection.socket.sendall(b"0\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            return connection.answer().status
    return None


def check_pieces(counter, work):
    whole = post(123)
    with counter.start(work) as service, Connection(service.port) as connection:
        for turn, cut in enumerate(range(1, len(whole)), 1):
            connection.socket.sendall(whole[:cut])
            time.sleep(PIECE_GAP_S)
            total = connection.ask(whole[cut:]).number()
            expect(total == 123 * turn, f"cut after {cut} bytes: the total is {total}, not {123 * turn}")
        # Three bytes of a body, each on its own.
        connection.socket.sendall(whole[:-3])
        for byte in (b"1", b"2"):
            time.sleep(PIECE_GAP_S)
            connection.socket.sendall(byte)
        time.sleep(PIECE_GAP_S)
        expect(connection.ask(b"3").number() == 123 * len(whole), "a body byte by byte was not added")
        service.stop()


def check_origins(counter, work):
    origin = "http://somewhere.example"
    with counter.start(work) as service:
        for wanted in (request("GET", fields=[f"Origin: {origin}"]), request("POST", body=b"1", fields=[f"Origin: {origin}"])):
            answer = service.ask(wanted)
            allowed = answer.fields.get("access-control-allow-origin")
            expect(answer.status == 200 and allowed in ("*", origin), f"another origin is not allowed: {allowed}")
        for method in ("GET", "POST"):
            asked = [
                f"Origin: {origin}",
                f"Access-Control-Request-Method: {method}",
                "Access-Control-Request-Headers: content-type",
            ]
            check_preflight(service.ask(request("OPTIONS", fields=asked)), origin)
        expect(service.count() == 1, "asking in advance was counted")
        service.stop()


def check_preflight(answer, origin):
    told = {name.removeprefix("access-control-"): value for name, value in answer.fields.items() if "access-control" in name}
    words = {name: [word.strip().lower() for word in value.split(",")] for name, value in told.items()}
    expect(answer.status in (200, 204), f"asked in advance, it answers {answer.status}")
    expect(told.get("allow-origin") in ("*", origin), f"asked in advance: {told}")
    expect({"get", "post"} <= set(words.get("allow-methods", [])), f"asked in advance: {told}")
    expect({"content-type", "*"} & set(words.get("allow-headers", [])), f"asked in advance: {told}")
    expect(told.get("max-age") == "3600", f"asked in advance: {told}")


def check_log(counter, work):
    """A line per request at info, none at warn, and once it listens nothing at all with CLICKY_NO_LOGGING."""
    for env, lines in ({"RUST_LOG": "info"}, 10), ({"RUST_LOG": "warn"}, 0), ({"RUST_LOG": "info", "CLICKY_NO_LOGGING": "1"}, 0):
        with counter.start(work, **env) as service:
            before = service.said()
            with Connection(service.port) as connection:
                for _ in range(10):
                    connection.ask(post(1))
            service.stop()
            told = [line for line in service.said().splitlines() if "POST" in line]
            expect(len(told) == lines, f"{len(told)} lines of 10 requests with {env}: {service.said()[-300:]}")
            expect("CLICKY_NO_LOGGING" not in env or service.said() == before, f"it wrote: {service.said()[-300:]}")


def check_one_counter(counter, work, backend, env, once=True):
    """No matter which worker is asked: each total is told once (of answers that wait for the disk, some may tell the total
    of all that it took with them), and all say the same in the end."""
    with counter.start(work, backend, **env) as service:
        before = service.count()
        loads = [Load(service.port, seed) for seed in range(8)]
        clicks = sum(share(load) for load in loads)
        for load in loads:
            load.join()
        totals = [total for load in loads for total in load.totals]
        expect(not once or len(set(totals)) == len(totals), f"{len(totals) - len(set(totals))} totals were told twice")
        expect(max(totals) == before + clicks, f"the greatest total is {max(totals)}, not {before + clicks}")
        said = {service.count() for _ in range(4 * THREADS)}
        expect(said == {before + clicks}, f"the workers say {said}, not {before + clicks}")
        service.stop()


def share(load, requests=100):
    """Starts a load of so many requests; what it will add."""
    amounts = [load.random.randint(1, CLICKS_MAX) for _ in range(requests)]

    def run():
        with Connection(load.port) as connection:
            load.totals += [connection.ask(post(clicks)).number() for clicks in amounts]

    load.run = run
    load.start()
    return sum(amounts)


def check_ends(counter, work, backend, env, ended, seed):
    """Ends it under load and starts it anew: what is there then."""
    with counter.start(work, backend, **env) as service:
        before = service.count()
        loads = [Load(service.port, seed + number) for number in range(8)]
        for load in loads:
            load.start()
        time.sleep(random.Random(seed).uniform(0.1, 0.6))
        service.stop() if ended == "SIGTERM" else service.kill()
        for load in loads:
            load.join()
    acknowledged = before + sum(load.acknowledged for load in loads)
    sent = acknowledged + sum(load.unanswered for load in loads)
    expect(acknowledged > before, "nothing was acknowledged")
    with counter.start(work, backend, **env) as service:
        kept = service.count()
        service.stop()
    if backend == "none":
        expect(kept == 0, f"without a backend it began with {kept}")
        return 0
    expect(kept <= sent, f"{kept - sent} clicks were there that were never sent")
    expect(ended == "SIGKILL" or kept >= acknowledged, f"{acknowledged - kept} acknowledged clicks were lost by {ended}")
    return acknowledged - kept


def check_file(counter, work):
    """It refuses what is no count, and goes on when a disk that failed is there again."""
    folder, away = work / "kept", work / "away"
    folder.mkdir()
    file = folder / "clicky.txt"
    env = {"CLICKY_COUNTER_FILE": str(file), "RUST_LOG": "warn"}
    file.write_text("not a count")
    check_refuses_to_start(counter, work, "file", env)
    expect(file.read_text() == "not a count", "it wrote over a file that is no count")
    file.write_text("1000\n")
    with counter.start(work, "file", **env) as service:
        expect(service.count() == 1000, f"1000 in the file, {service.count()} in the answer")
        folder.rename(away)
        before = (away / file.name).stat().st_ino
        expect(service.ask(post(5)).number() == 1005, "it does not count while it cannot write")
        until(service.said, "it does not say that it cannot write")
        away.rename(folder)
        until(lambda: file.read_text().strip() == "1005", "it does not write again after a failure")
        expect(file.stat().st_ino != before, "it writes into the file instead of replacing it")
        service.kill()
    with counter.start(work, "file", **env) as service:
        expect(service.count() == 1005, f"1005 in the file of one that was killed, {service.count()} in the answer")
        service.ask(post(1))
        service.stop()
    expect(file.read_text().strip() == "1006", f"the file says {file.read_text()!r} at the end, not 1006")
    left = sorted(path.name for path in folder.iterdir())
    expect(left == ["clicky.txt"], f"beside the count it left {left}")


def check_refuses_to_start(counter, work, backend, env):
    service = counter.start(work, backend, **env)
    try:
        status = service.process.wait(STOP_S)
        expect(status > 0 and service.said(), f"ended with status {status} and said {service.said()[-300:]!r}")
    except subprocess.TimeoutExpired:
        raise Wrong(f"started with {backend} and {env}") from None
    finally:
        service.kill()


def check_settings(counter, work):
    for backend, env in [
        ("nonesuch", {}),
        ("file", {"CLICKY_SYNC_FREQUENCY": "soon"}),
        ("file", {"CLICKY_SYNC_FREQUENCY": "0s"}),
    ]:
        check_refuses_to_start(counter, work, backend, env)
    nobody = f"redis://{HOST}:{free_port()}"
    check_refuses_to_start(counter, work, "redis", {"CLICKY_REDIS_URL": nobody})


def check_redis(counter, work, redis):
    """Two instances are one counter, which survives a Redis that was away and has forgotten everything."""
    env = redis.env()
    redis.ask("DEL", KEY)
    with counter.start(work, **env) as one, counter.start(work, **env) as two:
        for clicks in (1, 20, 300):
            one.ask(post(clicks))
            two.ask(post(clicks))
        until(lambda: (one.count(), two.count()) == (642, 642), "two instances do not come to agree")
        expect(redis.ask("GET", KEY) == "642", f"in Redis is {redis.ask('GET', KEY)}, not 642")
        redis.process.kill()
        expect(one.ask(post(7)).number() == 649, "it does not count while Redis is away")
        redis.start()
        until(lambda: (one.count(), two.count()) == (649, 649), f"Redis came back empty: {one.count()}, {two.count()}")
        one.ask(post(1))
        one.stop()
        expect(redis.ask("GET", KEY) == "650", f"after a stop Redis has {redis.ask('GET', KEY)}, not 650")
        two.stop()


def check_synced(counter, work, redis, seed):
    """What only rust/prony-clicky has: with CLICKY_ACK=synced, nothing that was acknowledged is lost, however it ends."""
    for backend, env in ("file", {}), ("sqlite", {}), ("redis", redis.env()):
        synced = env | {"CLICKY_ACK": "synced"}
        check_one_counter(counter, fresh(work, "synced"), backend, synced, once=False)
        for turn in range(STOPS):
            lost = check_ends(counter, fresh(work, "synced"), backend, synced, "SIGKILL", seed + turn)
            expect(lost <= 0, f"{lost} acknowledged clicks were lost by SIGKILL, kept in {backend} and synced")
    folder = fresh(work, "twice")
    with counter.start(folder, "file") as service:
        check_refuses_to_start(counter, folder, "file", {})
        service.stop()


def fresh(work, name):
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def check_counter(counter, work, seed):
    check_answers(counter, fresh(work, "answers"))
    check_refused(counter, fresh(work, "refused"))
    check_pieces(counter, fresh(work, "pieces"))
    check_origins(counter, fresh(work, "origins"))
    check_log(counter, fresh(work, "log"))
    check_settings(counter, fresh(work, "settings"))
    lost = 0
    with Redis(work / "redis") as redis:
        if counter.name == "rust/prony-clicky":
            check_synced(counter, work, redis, seed)
        else:
            check_file(counter, fresh(work, "file"))
        check_redis(counter, fresh(work, "instances"), redis)
        for backend, env in ("none", {}), ("file", {}), ("redis", redis.env()):
            check_one_counter(counter, fresh(work, "one"), backend, env)
            for turn in range(STOPS):
                check_ends(counter, fresh(work, "ends"), backend, env, "SIGTERM", seed + turn)
        lost = check_ends(counter, fresh(work, "killed"), "file", {}, "SIGKILL", seed)
    return lost


def prepare(name, folder, build_folder, prony):
    """Builds a subject and returns what it is, once for each choice of its variants."""
    subject = described.load(folder)
    expect(subject["name"] == folder.name, f"its name is {subject['name']}, its folder is {folder.name}")
    check_needs(subject["needs"])
    values = {"dir": str(folder), "build": str(build_folder)} | described.programs(prony)
    build(subject, folder, values)
    [command] = fill([subject["version"]["cmd"]], values)
    version = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60).stdout.strip()
    expect(version and "\n" not in version, f"its version is not one line: {version!r}")
    return version, [Counter(name, subject, values | choice) for choice in variants(subject)]


def check_counters(name, folder, build_folder, args, work):
    # Before the builds, which take minutes.
    check_needs(described.load(HERE / "backing" / "redis")["needs"])
    version, counters = prepare(name, folder, build_folder, args.prony)
    lost = check_counter(counters[0], work, args.seed)
    # Of its other builds the answers, and that they end as they should.
    for other in counters[1:]:
        check_answers(other, fresh(work, "answers"))
        check_ends(other, fresh(work, "ends"), "file", {}, "SIGTERM", args.seed)
    return f"{version}; {len(counters)} builds; by SIGKILL, {lost} acknowledged clicks were lost"


def check_backing(name, folder, build_folder, args, work):
    """It answers, keeps nothing by default, and everything where it is told to write each command to the disk."""
    version, _ = prepare(name, folder, build_folder, args.prony)
    with Redis(fresh(work, "memory"), folder.name) as service:
        expect(service.ask("INCRBY", KEY, "5") == "5", "it does not count")
        with socket.create_connection((HOST, service.port)):
            service.process.stop()
        left = [path.name for path in (work / "memory").iterdir() if not path.name.startswith("log")]
        expect(not left, f"it left {left}")
    with Redis(fresh(work, "log"), folder.name, ["--appendonly", "yes", "--appendfsync", "always"]) as service:
        service.ask("INCRBY", KEY, "7")
        service.process.kill()
        service.start()
        until(lambda: service.ask("GET", KEY) == "7", "with a log it forgot what it had acknowledged")
        service.process.stop()
    return version


class Upstream(socketserver.ThreadingTCPServer):
    """A small HTTP server that counts its connections and requests, and answers with what was posted."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self):
        super().__init__((HOST, 0), Upstreamed)
        self.lock, self.connections, self.requests = threading.Lock(), 0, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Upstreamed(socketserver.StreamRequestHandler):
    def handle(self):
        with self.server.lock:
            self.server.connections += 1
        with contextlib.suppress(ConnectionError):
            while self.answer():
                pass

    def answer(self):
        line = self.rfile.readline().decode()
        fields = {}
        while field := self.rfile.readline().decode().strip():
            fields[field.partition(":")[0].lower()] = field.partition(":")[2].strip()
        if not line:
            return False
        body = self.rfile.read(int(fields.get("content-length", 0)))
        with self.server.lock:
            self.server.requests += 1
        keeps = "1.1" in line and fields.get("connection", "").lower() != "close"
        head = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", f"Connection: {'keep-alive' if keeps else 'close'}"]
        self.wfile.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        return keeps


# Whether a front keeps its connections to the upstream.
KEEPS = {"nginx": True, "nginx-close": False, "haproxy": True}


def check_front(name, folder, build_folder, args, work):
    version, [front] = prepare(name, folder, build_folder, args.prony)
    asked = 200
    with Upstream() as one, Upstream() as two:
        servers = (one, two)
        upstreams = ",".join(f"{HOST}:{server.server_address[1]}" for server in servers)
        values = front.values | {"upstreams": upstreams}
        with Process(front.subject, values, fresh(work, "front")) as service, Connection(service.port) as connection:
            for number in range(asked):
                answer = connection.ask(post(number))
                expect((answer.status, answer.body) == (200, str(number).encode()), f"{number} came back as {answer.body!r}")
                expect(answer.fields.get("connection", "").lower() != "close", "it closes the client's connection")
            served = [server.requests for server in servers]
            expect(sum(served) == asked, f"{sum(served)} requests of {asked} came through")
            expect(min(served) > asked / 4, f"the instances had {served} requests")
            connections = sum(server.connections for server in servers)
            right = connections < asked / 10 if KEEPS[folder.name] else connections == asked
            expect(right, f"{connections} connections to the upstream for {asked} requests")
            service.stop()
            expect(not service.said(), f"it wrote: {service.said()[-300:]}")
    return f"{version}; {connections} connections to the upstream for {asked} requests"


def kind(folder):
    """The function that checks what is in a folder; None: it is none of these."""
    subject = described.load(folder)
    if folder.name.endswith("clicky"):
        return check_counters
    return {"backing": check_backing, "front": check_front}.get(subject["role"])


def all_folders():
    folders = [file.parent for file in sorted(HERE.glob("*/*/subject.toml"))]
    return [folder for folder in folders if kind(folder)]


def main():
    parser = argparse.ArgumentParser(description="Check the click counters, backing services and fronts.")
    parser.add_argument("subjects", nargs="*", metavar="LANGUAGE/NAME", help="default: all")
    parser.add_argument("--build", metavar="DIR", help="keep what is built here, for the next time (default: a directory that is removed)")
    parser.add_argument("--prony", metavar="PATH", default="prony", help="the prony binary")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments at which they are ended (default: 1)")
    args = parser.parse_args()
    described.leave_the_rest_behind()
    folders = [HERE / name for name in args.subjects] or all_folders()
    for folder in folders:
        if folder not in all_folders():
            parser.error(f"{folder} is no click counter, backing service or front")
    worst = 0
    for folder in folders:
        name = f"{folder.parent.name}/{folder.name}"
        with tempfile.TemporaryDirectory(prefix="prony-clicky-") as scratch:
            root = pathlib.Path(args.build).resolve() if args.build else pathlib.Path(scratch) / "build"
            # For one subject alone the folder is its own.
            built = root if len(folders) == 1 and args.build else root / name
            work = pathlib.Path(scratch) / "work"
            work.mkdir()
            try:
                print(f"clicky: {name} ok ({kind(folder)(name, folder, built, args, work)})")
            except NotRun as reason:
                print(f"clicky: {name} not run: {reason}")
                worst = worst or 3
            except (Wrong, KeyError, OSError, ValueError, subprocess.TimeoutExpired) as reason:
                print(f"clicky: {name} FAIL: {reason!r}")
                worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
