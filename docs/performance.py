#!/usr/bin/env python3
"""Client CPU per request of `prony load` beside wrk, and writes docs/performance.md.

Both drive the same nginx (one worker, core 0) from core 1, in turn, for several
rounds; CPU is what the kernel accounts to the finished process (wait4), so it is
measured from outside and in the same way for both. Needs nginx, wrk and two cores.

    ./docs/performance.py                  the table of docs/performance.md
    ./docs/performance.py --rounds 3 --seconds 2 --connections 100 --out -

Other programs that run meanwhile spoil it: where the machine does not become idle it measures nothing (fit.py).
"""

import argparse
import itertools
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # a measurement leaves nothing in the tree
import fit  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# Each run has the next of these to itself: the kernel keeps a closed connection's port for a minute,
# and 10,000 connections use a third of all ports to one address.
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 25)]
VARIANTS = ["ring", "ring-coalesce", "epoll", "epoll-coalesce"]
PAGE = """daemon off; master_process on; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
  access_log off; keepalive_requests 1000000000; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{ {listen} location /hello {{ default_type text/plain; return 200 "Hello, World!"; }} }}
}}
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 10, 100, 400, 10000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--out", default=os.path.join(HERE, "performance.md"))
    parser.add_argument("--variants", choices=VARIANTS, nargs="+", default=VARIANTS)
    parser.add_argument("--prony", metavar="BINARY", help="measure this one instead of building it")
    return parser.parse_args()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_nginx(folder, port):
    files = 20000
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="utf-8") as file:
        listen = " ".join(f"listen {address}:{port} backlog=4096;" for address in ADDRESSES)
        file.write(PAGE.format(dir=folder, listen=listen, files=files, connections=files - 200))
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    server = subprocess.Popen(["taskset", "-c", "0", nginx, "-p", folder, "-c", conf, "-e", folder + "/error.log"])
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("nginx did not start; see " + folder)


def measured(command, env):
    """Runs `command` on core 1: what it printed and the CPU seconds that the kernel accounts to it."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(["taskset", "-c", "1", *command], stdout=out, env={**os.environ, **env})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}\n{text}")
    return text, usage.ru_utime + usage.ru_stime


def wrk(url, connections, seconds):
    text, cpu = measured(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url], {})
    errors = re.search(r"Socket errors.*", text)
    if errors:
        print(f"wrk, {connections} connections: {errors.group(0)}", file=sys.stderr)
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    value, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)\b", text).groups()
    p50_ms = float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]
    return cpu / requests * 1e6, float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), p50_ms


def prony(binary, url, connections, seconds, variant):
    driver, _, coalesce = variant.partition("-")
    command = [binary, "load", "-t1", f"-c{connections}", f"-d{seconds}s", "--json", "-", url]
    text, cpu = measured(command + ["--coalesce"] * bool(coalesce), {"PRONY_DRIVER": driver})
    report = json.loads(text)
    if report["errors"] or report["connections_opened"] != connections:
        print(f"{variant}, {connections} connections: {report['connections_opened']} opened, errors {report['errors']}",
              file=sys.stderr)
    answered = report["completed"] + report["counts"]["drained"]
    return cpu / answered * 1e6, report["rate_per_s"], report["latency_ns"]["p50"] / 1e6


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def rows(binary, urls, connections, chosen):
    """Rounds in turn: one of each generator, then the next round."""
    seen = {name: [] for name in ["wrk", *chosen.variants]}
    for _ in range(chosen.rounds):
        for name, results in seen.items():
            if name == "wrk":
                results.append(wrk(next(urls), connections, chosen.seconds))
            else:
                results.append(prony(binary, next(urls), connections, chosen.seconds, name))
    for name, results in seen.items():
        cpu, rate, p50_ms = zip(*results)
        ratios = [mine / theirs[0] for mine, theirs in zip(cpu, seen["wrk"])]
        title = name if name == "wrk" else "Prony, " + name.replace("-coalesce", " `--coalesce`")
        cells = [f"{connections:,}", title, spread(cpu, 2), spread(ratios, 2) if name != "wrk" else "1",
                 f"{statistics.median(rate) / 1e3:.1f}", f"{statistics.median(p50_ms):.3f}"]
        yield "| " + " | ".join(cells) + " |"


def first_line_of(file, word):
    with open(file, encoding="utf-8") as lines:
        return next((line.split(":")[1].strip() for line in lines if word in line), "unknown")


def document(table, chosen, load):
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    version = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=False).stderr.strip()
    return "\n".join([
        "# Client CPU per request, beside wrk",
        "",
        "Made by [performance.py](performance.py); run it to make this page again on your machine.",
        "",
        f"CPU time of the whole generator process per completed request, in µs: median of {chosen.rounds} rounds of",
        f"{chosen.seconds} s (smallest–largest). The generators take turns within each round, on core 1, against the same",
        "nginx with one worker on core 0; `÷ wrk` is the median of the rounds' own ratios. Connecting is included, which",
        "counts at 10,000 connections. Loopback: part of the server's receive path is paid by the client's core and the",
        "other way round, for all generators alike. With `--coalesce` Prony waits a little for more answers",
        "([what that costs](decisions/coalescing.md)); without it, as in every experiment, it never does.",
        "",
        f"Machine: {first_line_of('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, Linux {platform.release()};",
        f"{version}; {time.strftime('%Y-%m-%d')}; load average before it began: {load:.2f}.",
        "",
        "| Connections | Generator | CPU µs per request | ÷ wrk | thousand requests/s | p50 ms |",
        "|---:|---|---:|---:|---:|---:|",
        *table,
        "",
        "Where the rates agree, the server is the limit and the generators drive it equally hard. At one connection both",
        "sides mostly wait for each other to be woken.",
        "",
    ])


def built():
    """The binary that the launcher builds: measured itself, without the launcher's own look at the sources."""
    subprocess.run([os.path.join(HERE, "..", "prony"), "--version"], check=True, stdout=subprocess.DEVNULL)
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "..", "target")
    return os.path.join(target, "release", "prony")


def main():
    chosen = options()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    binary = chosen.prony or built()
    load = fit.load_before(chosen.out)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        os.chmod(folder, 0o755)
        server = start_nginx(folder, port)
        try:
            table = []
            urls = itertools.cycle(f"http://{address}:{port}/hello" for address in ADDRESSES)
            for connections in chosen.connections:
                for row in rows(binary, urls, connections, chosen):
                    table.append(row)
                    print(row, file=sys.stderr)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    text = document(table, chosen, load)
    if chosen.out == "-":
        print(text)
    else:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(text)


main()
