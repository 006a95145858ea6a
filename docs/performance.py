#!/usr/bin/env python3
"""Client CPU per request of `prony load` beside wrk, and writes docs/performance.md.

Both drive the same nginx (one worker, core 0) from core 1, in turn, for several
rounds; CPU is what the kernel accounts to the finished process (wait4), so it is
measured from outside and in the same way for both. Needs nginx, wrk and two cores.

    ./docs/performance.py                  the table of docs/performance.md
    ./docs/performance.py --rounds 3 --seconds 2 --connections 100 --out -
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = """daemon off; master_process on; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
  access_log off; keepalive_requests 1000000000; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{ listen 127.0.0.1:{port} backlog=4096; location /hello {{ default_type text/plain; return 200 "Hello, World!"; }} }}
}}
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 10, 100, 400, 10000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--out", default=os.path.join(HERE, "performance.md"))
    parser.add_argument("--driver", choices=["ring", "epoll"], nargs="+", default=["ring", "epoll"])
    return parser.parse_args()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_nginx(folder, port):
    files = 20000
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="utf-8") as file:
        file.write(PAGE.format(dir=folder, port=port, files=files, connections=files - 200))
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
    text, cpu = measured(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url], {})
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    return cpu / requests * 1e6, float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))


def prony(url, connections, seconds, driver):
    command = [os.path.join(HERE, "..", "prony"), "load", "-t1", f"-c{connections}", f"-d{seconds}s", "--json", "-", url]
    text, cpu = measured(command, {"PRONY_DRIVER": driver})
    report = json.loads(text)
    return cpu / (report["completed"] + report["counts"]["drained"]) * 1e6, report["rate_per_s"]


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def row(url, connections, chosen):
    """Rounds in turn: one of each generator, then the next round."""
    names = ["wrk", *chosen.driver]
    cpu = {name: [] for name in names}
    rate = {name: [] for name in names}
    for _ in range(chosen.rounds):
        for name in names:
            run = (lambda: wrk(url, connections, chosen.seconds)) if name == "wrk" else (
                lambda: prony(url, connections, chosen.seconds, name))
            micros, per_second = run()
            cpu[name].append(micros)
            rate[name].append(per_second)
    cells = [f"{connections:,}", spread(cpu["wrk"], 2)]
    for name in chosen.driver:
        ratios = [mine / theirs for mine, theirs in zip(cpu[name], cpu["wrk"])]
        cells += [spread(cpu[name], 2), spread(ratios, 2)]
    cells += [f"{statistics.median(rate[name]) / 1e3:.1f}" for name in names]
    return "| " + " | ".join(cells) + " |"


def document(rows, chosen):
    names = ["wrk", *[f"Prony, {driver}" for driver in chosen.driver]]
    head = ["Connections", "wrk µs"]
    for driver in chosen.driver:
        head += [f"Prony µs, {driver}", "÷ wrk"]
    head += [f"{name} k/s" for name in names]
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if "model name" in line), "?")
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=False).stderr.strip()
    return "\n".join([
        "# Client CPU per request, beside wrk",
        "",
        "Made by [performance.py](performance.py); run it to make this page again on your machine.",
        "",
        f"CPU time of the whole generator process per completed request, in µs: median of {chosen.rounds} rounds of",
        f"{chosen.seconds} s (smallest–largest). The generators take turns within each round, on core 1, against the same",
        "nginx with one worker on core 0; `÷ wrk` is the median of the rounds' own ratios. Loopback: part of the server's",
        "receive path is paid by the client's core and the other way round, for all generators alike.",
        "",
        f"Machine: {cpu}, {os.cpu_count()} cores, Linux {platform.release()}; {version}; {time.strftime('%Y-%m-%d')}.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---:|" * len(head),
        *rows,
        "",
        "Where the rates agree, the server is the limit and the generators drive it equally hard. At one connection both",
        "sides mostly wait for each other to be woken.",
        "",
    ])


def main():
    chosen = options()
    subprocess.run([os.path.join(HERE, "..", "prony"), "--version"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        os.chmod(folder, 0o755)
        server = start_nginx(folder, port)
        try:
            rows = []
            for connections in chosen.connections:
                rows.append(row(f"http://127.0.0.1:{port}/hello", connections, chosen))
                print(rows[-1], file=sys.stderr)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    text = document(rows, chosen)
    if chosen.out == "-":
        print(text)
    else:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(text)


main()
