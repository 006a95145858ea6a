#!/usr/bin/env python3
"""The cost of Prony's hosts of applications beside others', and writes docs/hosts.md.

Needs wrk, nginx, a C compiler, and an environment of Python with the hosts:

    python3 -m venv /tmp/hosts
    /tmp/hosts/bin/pip install ./python bjoern==3.2.2 granian==2.8.7 gunicorn==27.0.1 flask==3.1.3
    ./docs/hosts.py --venv /tmp/hosts

Other programs that run meanwhile spoil it: where the machine does not become idle it measures nothing (fit.py).
"""

import argparse
import json
import os
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True  # a measurement leaves nothing in the tree
import fit  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

LUA = """local function app(environ, start_response)
  start_response("200 OK", {{"Content-Type", "text/plain"}, {"Content-Length", "11"}})
  return {"hello world"}
end
return {app = app}
"""
WSGI = """def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "11")])
    return [b"hello world"]
"""
FLASK = """from flask import Flask
app = Flask(__name__)
@app.route("/")
def hello():
    return "hello world"
"""
BJOERN = """import bjoern, sys, hello
bjoern.run(hello.app, "127.0.0.1", int(sys.argv[1]), listen_backlog=4096)
"""
NGINX = """daemon off; worker_processes 1; pid {dir}/pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s; types {{ text/plain txt; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; location /static/ {{ alias {dir}/files/; {more} }} }} }}
"""


def built():
    """The binary that the launcher builds: measured itself, without the launcher's own look at the sources."""
    subprocess.run([f"{ROOT}/prony", "--version"], check=True, stdout=subprocess.DEVNULL)
    return os.environ.get("CARGO_TARGET_DIR", f"{ROOT}/target") + "/release/prony"


def servers(prony, venv, work):
    """Command and path of each by its name; {port} is filled in."""
    python = f"{venv}/bin"
    granian = [f"{python}/granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1",
               "--blocking-threads", "1", "--no-ws", "--http", "1"]
    gunicorn = [f"{python}/gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "1", "--backlog", "4096"]
    wsgi = [f"{python}/prony-wsgi", "--workers", "1"]
    return {
        "prony host": ([prony, "host", "hello:app", "{port}", "--workers", "1"], "/"),
        "prony-wsgi": ([*wsgi, "hello:app", "{port}"], "/"),
        "prony-wsgi, 4 threads": ([*wsgi, "--threads", "4", "hello:app", "{port}"], "/"),
        "bjoern": ([f"{python}/python", "bj.py", "{port}"], "/"),
        "granian": ([*granian, "hello:app"], "/"),
        "granian as it comes": ([f"{python}/granian", "--interface", "wsgi", "--port", "{port}", "hello:app"], "/"),
        "prony-wsgi, Flask": ([*wsgi, "flasky:app", "{port}"], "/"),
        "gunicorn, Flask": ([*gunicorn, "flasky:app"], "/"),
        "granian, Flask": ([*granian, "flasky:app"], "/"),
        "prony host, file": ([prony, "host", "hello:app", "{port}", "--workers", "1", "--static", f"{work}/files"], "/static/ten.txt"),
        "nginx, file": (["nginx", "-c", f"{work}/nginx-{{port}}.conf"], "/static/ten.txt"),
        "nginx, file, open_file_cache": (["nginx", "-c", f"{work}/nginx-{{port}}.conf"], "/static/ten.txt"),
    }


# What is compared, the first with each of the others; and of which figure (0: CPU, 1: rate) which ratio is asked.
COMPARISONS = {
    "lua": ("An application in Lua", ["prony host", "bjoern"], {"bjoern": (0, 0.70)}),
    "python": (
        "An application in Python",
        ["prony-wsgi", "prony-wsgi, 4 threads", "bjoern", "granian", "granian as it comes"],
        {"bjoern": (0, 0.95), "granian as it comes": (0, 0.30)},
    ),
    "flask": (
        "Flask",
        ["prony-wsgi, Flask", "gunicorn, Flask", "granian, Flask"],
        {"gunicorn, Flask": (1, 2.0), "granian, Flask": (1, 1.3)},
    ),
    "files": (
        "A file of 10 KiB",
        ["prony host, file", "nginx, file", "nginx, file, open_file_cache"],
        {"nginx, file": (0, 0.75)},
    ),
}
WAYS = ["least", "shared", "reuseport"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """The process and all that descend from it."""
    found = [pid]
    for parent in found:
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children") as children:
                found += [int(child) for child in children.read().split()]
    return found


def cpu_ns(pid):
    total = 0
    for process in family(pid):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/schedstat") as stat:
                total += int(stat.read().split()[0])
    return total


def private_kib(pid):
    """Private memory of the youngest process, which is the worker."""
    with open(f"/proc/{family(pid)[-1]}/smaps_rollup") as rollup:
        sizes = dict(line.split(":", 1) for line in rollup if ":" in line)
    return sum(int(sizes[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))


class Server:
    def __init__(self, name, command, path, work):
        self.name, self.path, self.port = name, path, free_port()
        if "nginx" in name:
            more = "open_file_cache max=100; open_file_cache_valid 1s;" if "open_file_cache" in name else ""
            with open(f"{work}/nginx-{self.port}.conf", "w") as conf:
                conf.write(NGINX.format(dir=work, port=self.port, more=more))
        command = [word.replace("{port}", str(self.port)) for word in command]
        env = {**os.environ, "PYTHONPATH": work, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], cwd=work, env=env, stdout=subprocess.DEVNULL)

    def wait(self):
        """Until it answers: some listen before they have loaded the application."""
        due = time.monotonic() + 20
        while time.monotonic() < due and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.path}", timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{self.name} does not serve")

    def ask(self, seconds):
        before = cpu_ns(self.process.pid)
        words = ["taskset", "-c", "1", "wrk", "-t1", "-c50", f"-d{seconds}", f"http://127.0.0.1:{self.port}{self.path}"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        after = cpu_ns(self.process.pid)
        if "Non-2xx" in printed:
            sys.exit(f"{self.name}: {printed}")
        count = int(re.search(r"(\d+) requests in", printed).group(1))
        rate = float(re.search(r"Requests/sec:\s*([\d.]+)", printed).group(1))
        return (after - before) / count / 1e3, rate

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()


def spread(values, form):
    middle = statistics.median(values)
    return f"{middle:{form}} ({min(values):{form}}–{max(values):{form}})"


def judged(values, asked):
    """What is asked of the median ratio, and whether it is so."""
    if asked is None:
        return "", ""
    which, limit = asked
    middle = statistics.median(values[which])
    sign, is_met = ("≥", middle >= limit) if which else ("≤", middle <= limit)
    return f"{('CPU', 'rate')[which]} {sign} {limit:.2f}", "yes" if is_met else "no"


def compare(known, names, asked, chosen, work):
    """The lines of a table."""
    running = [Server(name, *known[name], work) for name in names]
    try:
        for server in running:
            server.wait()
            server.ask(1)
        rounds = {server.name: [] for server in running}
        for turn in range(chosen.rounds):
            for server in running[turn % len(running):] + running[:turn % len(running)]:
                rounds[server.name].append(server.ask(chosen.seconds))
        us = names[0]
        yield f"| host | CPU µs a request | requests/s | CPU, {us} ÷ it | rate, {us} ÷ it | private KiB of a process | asked | met |"
        yield "|---|---:|---:|---:|---:|---:|---|---|"
        first = rounds[names[0]]
        for server in running:
            own = rounds[server.name]
            ratios = [[mine[which] / other[which] for mine, other in zip(first, own)] for which in (0, 1)]
            shown = [spread(values, ".2f") if server is not running[0] else "1" for values in ratios]
            cells = [server.name, spread([cost for cost, _ in own], ".2f"), spread([rate for _, rate in own], ",.0f"),
                     *shown, f"{private_kib(server.process.pid):,}", *judged(ratios, asked.get(server.name))]
            yield "| " + " | ".join(cells) + " |"
    finally:
        for server in running:
            server.end()


def slow_ones(prony, work, connections, rounds):
    """99th percentile in ms and rate of each way of distribution, where 1 % of requests take 100 ms."""
    seen = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            command = [prony, "host", "--path", f"{ROOT}/subjects/lua/prony-host", "app:app", "{port}", "--workers", "4",
                       "--distribution", way]
            server = Server(way, command, "/mixed", work)
            try:
                server.wait()
                words = ["taskset", "-c", "1", prony, "load", "-t", "1", "-c", str(connections), "-d", "4s", "--json", "-"]
                url = f"http://127.0.0.1:{server.port}/mixed"
                report = json.loads(subprocess.run([*words, url], capture_output=True, check=True).stdout)
                seen[way].append((report["latency_ns"]["p99"] / 1e6, report["rate_per_s"]))
            finally:
                server.end()
    for way in WAYS:
        tails, rates = zip(*seen[way])
        ratios = [mine[0] / other[0] for mine, other in zip(seen["least"], seen[way])]
        asked = ("p99 ≤ 0.50", "yes" if statistics.median(ratios) <= 0.50 else "no") if way == "shared" else ("", "")
        shown = spread(ratios, ".2f") if way != "least" else "1"
        cells = [str(connections), way, spread(tails, ".0f"), spread(rates, ",.0f"), shown, *asked]
        yield "| " + " | ".join(cells) + " |"


def memory(prony, venv, work):
    """Private KiB of a worker that has answered, and of an interpreter that has nothing to do."""
    words = [f"{venv}/bin/python", "-c", "print(flush=True); input()"]
    idle = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    idle.stdout.readline()
    empty = private_kib(idle.pid)
    idle.communicate(b"\n")
    yield f"| an interpreter of Python, empty | {empty:,} | | |"
    known = servers(prony, venv, work)
    for name, most, less in [("prony host", 6144, 0), ("prony-wsgi", 16384, empty)]:
        server = Server(name, *known[name], work)
        try:
            server.wait()
            server.ask(1)
            used = private_kib(server.process.pid)
        finally:
            server.end()
        above = " above an empty interpreter" if less else ""
        yield f"| {name} | {used:,} | ≤ {most:,}{above} | {'yes' if used - less <= most else 'no'} |"


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")


def head(chosen, load):
    return [
        "# Hosts of applications, beside others",
        "",
        "Made by [hosts.py](hosts.py); run it to make this page again on your machine.",
        "",
        "One process of each host on core 0, wrk on core 1 with 50 connections, both on loopback; the hosts take turns within",
        f"each of {chosen.rounds} rounds of {chosen.seconds} s. CPU is what the kernel accounts to all processes and threads of the host",
        "(schedstat), its own work for them included, over the requests that wrk counts. Medians (smallest–largest); a ratio is of one",
        "round. Applications answer 11 bytes.",
        "",
        f"Machine: {processor()}, {os.cpu_count()} cores, Linux {platform.release()}; {time.strftime('%Y-%m-%d')};",
        f"load average before it began: {load:.2f}.",
    ]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", required=True, help="an environment of Python with the hosts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2, help="of a round of one host")
    parser.add_argument("--only", choices=[*COMPARISONS, "tail", "memory"], action="append")
    parser.add_argument("--out", default=f"{ROOT}/docs/hosts.md", help="- for standard output")
    return parser.parse_args()


def main():
    chosen = options()
    prony, venv = built(), os.path.abspath(chosen.venv)
    load = fit.load_before(chosen.out)
    lines = head(chosen, load)

    def chapter(title, rows, *before):
        lines.extend(["", f"## {title}", "", *before])
        for row in rows:
            print(row, file=sys.stderr)
            lines.append(row)

    parts = chosen.only or [*COMPARISONS, "tail", "memory"]
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        os.mkdir(f"{work}/files")
        for name, text in [("hello.lua", LUA), ("hello.py", WSGI), ("flasky.py", FLASK), ("bj.py", BJOERN),
                           ("files/ten.txt", "0123456789abcdef" * 640)]:
            with open(f"{work}/{name}", "w") as file:
                file.write(text)
        known = servers(prony, venv, work)
        for part in [part for part in COMPARISONS if part in parts]:
            title, names, asked = COMPARISONS[part]
            chapter(title, compare(known, names, asked, chosen, work))
        if "tail" in parts:
            rows = [row for connections in (50, 400) for row in slow_ones(prony, work, connections, 3)]
            chapter("Slow requests and four workers", rows,
                    "`prony host --workers 4`, where of each worker's requests one in a hundred takes 100 ms, which blocks the worker;",
                    "by `prony load`, 3 rounds of 4 s. All connections of a worker wait while it is blocked, so that far more than 1 % of",
                    "requests take 100 ms: with few connections that is the 99th percentile in any case, and the ways differ by how many",
                    "requests are answered at all. `shared` leaves nearly all connections to one worker ([why](decisions/workers.md)).", "",
                    "| connections | distribution | p99 ms | requests/s | p99, least ÷ it | asked | met |",
                    "|---:|---|---:|---:|---:|---|---|")
        if "memory" in parts:
            chapter("Memory", memory(prony, venv, work), "| process | private KiB | asked | met |", "|---|---:|---|---|")
    text = "\n".join([*lines, ""])
    if chosen.out == "-":
        print(text)
    else:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(text)


main()
