#!/usr/bin/env python3
"""Builds, starts, checks and stops one subject alone, for whoever writes or mends one. A program is run to its end,
each of its works and builds once; a client by clients.py; a click counter, a backing service and a front by clicky.py.

    try.py LANGUAGE/NAME [--build DIR] [--threads N] [--count N] [--prony PATH] [--hold]

Needs Python 3.11 or newer, and nothing else that the subject does not need. It is not the lab: it measures nothing.
Exit status: 0 all `must` checks hold and it starts and stops as agreed; 1 not so; 2 usage; 3 not run here.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True  # a check leaves nothing in the tree
import building  # noqa: E402
import conformance  # noqa: E402
import described  # noqa: E402
import processes  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
POLL_S = 0.02
PROGRAM_TIMEOUT_S = 60
# Helpers of a runtime, such as Python's resource tracker, end a moment after the process that they belong to.
STRAGGLERS_S = 1.0


class NotRun(Exception):
    """The machine lacks something that the subject needs."""


class Wrong(Exception):
    """The subject did not do what it must."""


def fill(text, values):
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def shell(command, values, folder, timeout_s, **options):
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    return subprocess.run(["sh", "-c", fill(command, quoted)], cwd=folder, timeout=timeout_s, **options)


def check_needs(needs):
    missing = [f"command {name}" for name in needs.get("commands", []) if shutil.which(name) is None]
    missing += [f"file {name}" for name in needs.get("files", []) if not os.path.exists(name)]
    if missing:
        packages = needs.get("packages", {})
        remedy = packages.get("debian") or packages.get("any") or "nothing known"
        when = f" ({packages['when']})" if "when" in packages else ""
        raise NotRun(f"missing: {', '.join(missing)}; to change it: {remedy}{when}")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def is_ready(ready, values, log):
    if "http" in ready:
        return answers(f"http://{values['host']}:{values['port']}{ready['http']}")
    if "line" in ready:
        return ready["line"] in log.read_text(errors="replace")
    with contextlib.suppress(OSError):
        socket.create_connection((values["host"], int(values["port"])), timeout=1).close()
        return True
    return False


def wait_ready(process, subject, values, log):
    started = time.monotonic()
    timeout_s = subject["ready"]["timeout_s"]
    while not is_ready(subject["ready"], values, log):
        if process.poll() is not None:
            raise Wrong(f"ended with status {process.returncode} before it was ready")
        if time.monotonic() - started > timeout_s:
            raise Wrong(f"not ready after {timeout_s} s")
        time.sleep(POLL_S)
    print(f"try: ready in {time.monotonic() - started:.2f} s")


def stop(process, subject):
    """Ends the subject as its file says, while an idle connection is open, and checks how it ends."""
    started = time.monotonic()
    number = signal.Signals[f"SIG{subject['stop']['signal']}"]
    process.send_signal(number)
    try:
        status = process.wait(subject["stop"]["timeout_s"])
    except subprocess.TimeoutExpired:
        raise Wrong(f"still there {subject['stop']['timeout_s']} s after {number.name}") from None
    took_s = time.monotonic() - started
    if status not in (0, -number):
        raise Wrong(f"ended with status {status} after {number.name}")
    if took_s > 5:
        raise Wrong(f"took {took_s:.1f} s to stop")
    print(f"try: stopped in {took_s:.2f} s with status {status}")


def left_behind(process):
    """The processes that are left of the subject's group after a moment."""
    deadline = time.monotonic() + STRAGGLERS_S
    while (names := processes.of_group(process.pid)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return names


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def started(subject, values, more, log):
    """The server with further arguments, until it is left."""
    command = [fill(word, values) for word in [*subject["start"]["cmd"], *more]]
    env = described.environment("trials") | {name: fill(value, values) for name, value in subject["start"].get("env", {}).items()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=values["work"], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        kill_group(process)


def exercise(subject, values, log, hold):
    try:
        with started(subject, values, [], log) as process:
            wait_ready(process, subject, values, log)
            if hold:
                input(f"try: http://{values['host']}:{values['port']} (process {process.pid}); Enter stops it ")
            target = conformance.Target(values["host"], int(values["port"]), subject["endpoints"], seed=1, timeout_s=5)
            must, can = conformance.run(target)
            if "counts" in subject:
                check_counts(subject["counts"], values)
            with conformance.Connection(target) as idle:
                # An answered request first: Go waits 5 s for the first one of a new connection.
                idle.send(target.probe()[0])
                idle.response()
                stop(process, subject)
            if names := left_behind(process):
                raise Wrong(f"left processes behind: {', '.join(names)}")
    finally:
        if log.stat().st_size:
            print(f"try: it wrote\n{log.read_text(errors='replace')[-2000:].rstrip()}")
    if must:
        raise Wrong(f"failed: {', '.join(must)}")
    return can


def certificate(work):
    """A certificate for 127.0.0.1 and its key, as files in the folder."""
    made = {"certificate": str(work / "certificate.pem"), "key": str(work / "key.pem")}
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", made["certificate"], "-keyout", made["key"]]
    subprocess.run(command, check=True, capture_output=True)
    return made


# What a client of HTTP/2 begins with: the preface and settings that change nothing.
HTTP2_BEGINS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
HTTP2_SETTINGS = 4


def connected(values, trusted, offer):
    """A connection, with TLS if a certificate is trusted, where ALPN offers one protocol, which is to be chosen."""
    plain = socket.create_connection((values["host"], int(values["port"])), timeout=5)
    if trusted is None:
        return plain
    context = ssl.create_default_context(cafile=trusted)
    context.set_alpn_protocols([offer])
    secure = context.wrap_socket(plain, server_hostname=values["host"])
    if secure.selected_alpn_protocol() not in (offer, None if offer == "http/1.1" else offer):
        raise Wrong(f"chooses {secure.selected_alpn_protocol()} where ALPN offers {offer}")
    return secure


def exercise_protocol(subject, protocol, values, log):
    """HTTP/1.1 by one protocol of a subject, with TLS under it or not, and HTTP/2 where that is what it is."""
    values = values | {"port": str(free_port())}
    trusted = None if protocol == "h2c" else values["certificate"]
    path = "/hello" if "/hello" in subject["endpoints"] else subject["endpoints"][0]
    with started(subject, values, subject["protocols"][protocol], log) as process:
        deadline = time.monotonic() + subject["ready"]["timeout_s"]
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"{protocol}: is not ready: {log.read_text(errors='replace')[-300:]}")
            with contextlib.suppress(OSError), connected(values, trusted, "http/1.1") as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
                if answer:
                    break
            time.sleep(POLL_S)
        if b" 200 " not in answer.splitlines()[0] + b" ":
            raise Wrong(f"{protocol}: {path} is answered by {answer[:80]!r}")
        if protocol != "https":
            with connected(values, trusted, "h2") as connection:
                connection.sendall(HTTP2_BEGINS)
                head = connection.recv(9)
                if len(head) < 4 or head[3] != HTTP2_SETTINGS or head.startswith(b"HTTP"):
                    raise Wrong(f"{protocol}: HTTP/2 is answered by {head!r}")
        stop(process, subject)


def exercise_protocols(subject, values, scratch):
    """Each protocol that a server speaks beside plain HTTP/1.1."""
    if not subject.get("protocols"):
        return
    if shutil.which("openssl") is None:
        print("try: its protocols are not checked: that needs openssl")
        return
    work = scratch / "protocols"
    work.mkdir(exist_ok=True)
    values = values | certificate(work) | {"work": str(work)}
    for protocol in subject["protocols"]:
        exercise_protocol(subject, protocol, values, scratch / "protocol.log")
        print(f"try: {protocol} ok")


def count(counts, values):
    """The number of requests that a peer says that it has had."""
    with urllib.request.urlopen(f"http://{values['host']}:{values['port']}{counts['path']}", timeout=5) as response:
        text = response.read().decode(errors="replace")
    # Rust's way to name a group, as the lab reads it.
    found = re.search(counts["requests"].replace("(?<requests>", "(?P<requests>"), text)
    if found is None:
        raise Wrong(f"no `requests` in its counts: {text[:80]!r}")
    return int(found["requests"])


def check_counts(counts, values):
    """What a peer counts is to the unit: a reading, and a request between two readings."""
    own = counts.get("own_requests", 1)
    stale_s = counts.get("refresh_ms", 0) * 1.2 / 1000
    deadline = time.monotonic() + STRAGGLERS_S + 4 * stale_s
    before, after = 0, -1
    while after - before != own and time.monotonic() < deadline:
        time.sleep(stale_s)
        before, after = after, count(counts, values)
    if after - before != own:
        raise Wrong(f"two readings of its counts differ by {after - before}, not {own}")
    answers(f"http://{values['host']}:{values['port']}/hello")
    time.sleep(stale_s)
    rise = count(counts, values) - after
    if rise != own + 1:
        raise Wrong(f"one request raised its counts by {rise - own}")


def exercise_by(script, args, build_folder):
    """Clients are held against what their peers count, and click counters to what they keep, by scripts of their own."""
    script = [sys.executable, str(HERE / script), args.subject, "--prony", args.prony, "--build", str(build_folder)]
    status = subprocess.run(script).returncode
    if status == 3:
        raise NotRun("see above")
    if status != 0:
        raise Wrong("see above")


def measurements(text):
    """The lines of JSON that say a measure."""
    found = []
    for line in text.splitlines():
        if not line.strip().startswith("{"):
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            if '"measure"' in line:
                raise Wrong(f"a line is no JSON: {line[:80]}: {error}") from None
            continue
        if "measure" in value:
            found.append(value)
    return found


def check_measurement(line, count, threads):
    """Raises Wrong unless a line is as CONTRACT.md says."""
    wanted = {"measure": str, "threads": int, "count": int, "elapsed_ns": int}
    for name, kind in (wanted | {"bytes": int, "checksum": str}).items():
        value = line.get(name)
        if (value is None and name in wanted) or (value is not None and type(value) is not kind):
            raise Wrong(f"`{name}` is {value!r} in {line}")
    if not line["measure"] or line["elapsed_ns"] <= 0:
        raise Wrong(f"no measure or no time in {line}")
    if (line["threads"], line["count"]) != (threads, count * threads):
        raise Wrong(f"asked for {count} on each of {threads} threads, got {line}")


def run_program(program, values):
    """Runs a program to its end: its status, its measurements and its standard error."""
    command = [fill(word, values) for word in program["cmd"]]
    env = described.environment("trials") | {name: fill(value, values) for name, value in program.get("env", {}).items()}
    process = subprocess.Popen(
        command, cwd=values["dir"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=PROGRAM_TIMEOUT_S)
        if names := left_behind(process):
            raise Wrong(f"left processes behind: {', '.join(names)}")
    finally:
        kill_group(process)
    return process.returncode, output, errors


def builds(subject):
    """Every choice of one value for each variant."""
    choices = [{}]
    for name, values in subject.get("variants", {}).items():
        choices = [choice | {name: value} for choice in choices for value in values]
    return choices


def exercise_program(subject, values, count, threads):
    """Each work of a program once in each build, and a work that it does not have."""
    program = subject["program"]
    if both := set(program["works"]) & set(program.get("not_applicable", {})):
        raise Wrong(f"works and not applicable at once: {', '.join(both)}")
    for build_values in builds(subject):
        sums = values | build_values | {"count": str(count), "threads": str(threads)}
        for work in program["works"]:
            status, output, errors = run_program(program, sums | {"work": work})
            if status != 0:
                raise Wrong(f"{work}: ended with status {status}: {errors.strip()[-300:]}")
            lines = [] if "output" in program else measurements(output)
            if "output" not in program and not lines:
                raise Wrong(f"{work}: printed no measurement")
            for line in lines:
                check_measurement(line, count, threads)
            print(f"try: {work} {' '.join(build_values.values())} {lines}"[:200])
        status, output, errors = run_program(program, sums | {"work": "no-such-work"})
        if len(program["works"]) > 1 and (status == 0 or not errors.strip()):
            raise Wrong(f"an unknown work: status {status}, and on standard error {errors!r}")


def trial(args, folder, scratch):
    subject = described.load(folder)
    if subject["name"] != folder.name:
        raise Wrong(f"its name is {subject['name']}, its folder is {folder.name}")
    check_needs(subject["needs"])
    build_folder = pathlib.Path(args.build).resolve() if args.build else scratch / "build"
    if subject["role"] in ("backing", "front") or subject["name"].endswith("clicky"):
        # The script builds it, unless that is in vain.
        exercise_by("clicky.py", args, build_folder)
        print(f"try: {args.subject} ok")
        return
    values = {"dir": str(folder), "build": str(build_folder)} | described.programs(args.prony)
    print(f"try: {building.build(subject, folder, values)}", flush=True)
    version = shell(subject["version"]["cmd"], values, folder, 60, capture_output=True, text=True).stdout.strip()
    print(f"try: {version}")
    if not version or "\n" in version:
        raise Wrong("its version is not one line")
    if "program" in subject:
        exercise_program(subject, values, args.count, args.threads)
    if "client" in subject:
        exercise_by("clients.py", args, build_folder)
    if subject["role"] in ("program", "client"):
        print(f"try: {args.subject} ok")
        return
    work = scratch / "work"
    work.mkdir()
    values |= {name: offered[0] for name, offered in subject.get("variants", {}).items()}
    values |= {"host": "127.0.0.1", "port": str(free_port()), "threads": str(args.threads), "work": str(work)}
    values |= {"payload_bytes": "0", "instance": "0"}
    can = exercise(subject, values, scratch / "log", args.hold)
    exercise_protocols(subject, values, scratch)
    print(f"try: {args.subject} ok{'; cannot: ' + ', '.join(can) if can else ''}")


def main():
    parser = argparse.ArgumentParser(description="Build, start, check and stop one subject.")
    parser.add_argument("subject", help="LANGUAGE/NAME, or the path of a folder with a subject.toml")
    parser.add_argument("--build", metavar="DIR", help="keep what is built here, for the next time (default: a directory that is removed)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="size of a program's works (default: 1000)")
    parser.add_argument("--prony", metavar="PATH", default="prony", help="the prony binary, for rust/prony")
    parser.add_argument("--hold", action="store_true", help="wait for Enter before the checks")
    args = parser.parse_args()
    # Subjects are started in their own folders.
    if "/" in args.prony:
        args.prony = str(pathlib.Path(args.prony).resolve())
    described.leave_the_rest_behind()
    folders = [folder for folder in (HERE / args.subject, pathlib.Path(args.subject)) if (folder / "subject.toml").is_file()]
    if not folders:
        parser.error(f"no subject.toml in {HERE / args.subject}")
    with tempfile.TemporaryDirectory(prefix="prony-try-") as scratch:
        try:
            trial(args, folders[0].resolve(), pathlib.Path(scratch))
        except NotRun as reason:
            print(f"try: {args.subject} not run: {reason}")
            return 3
        except (Wrong, building.Failed, conformance.Failed, OSError, subprocess.TimeoutExpired) as reason:
            print(f"try: {args.subject} FAIL: {reason}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
