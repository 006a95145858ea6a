#!/usr/bin/env python3
"""CPU per request and rate of Prony's hosts beside others, in turn, on one core.

Each server has core 0 to itself while wrk asks it from core 1 over 50 connections;
CPU is what the kernel accounts to all of the server's processes (schedstat), over the
requests that wrk counts. Rounds are interleaved; a ratio is one of a round, and what is
printed is the median ratio with the smallest and the largest.

    python3 -m venv /tmp/hosts
    /tmp/hosts/bin/pip install ./python bjoern==3.2.2 granian==2.8.7 gunicorn==27.0.1 flask==3.1.3
    ./docs/hosts.py --venv /tmp/hosts [--rounds 7] [--seconds 2] [--only lua]

Needs wrk, nginx and the release build of prony. Other programs that run meanwhile spoil it.
"""

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

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


def servers(venv, work):
    """Name, command and path of each; {port} is filled in."""
    python = f"{venv}/bin"
    prony = os.environ.get("CARGO_TARGET_DIR", f"{ROOT}/target") + "/release/prony"
    granian = [f"{python}/granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1",
               "--blocking-threads", "1", "--no-ws", "--http", "1"]
    gunicorn = [f"{python}/gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "1", "--backlog", "4096"]
    wsgi = [f"{python}/prony-wsgi", "--workers", "1"]
    return {
        "lua": ([prony, "host", "hello:app", "{port}", "--workers", "1"], "/"),
        "wsgi": ([*wsgi, "hello:app", "{port}"], "/"),
        "wsgi-threads": ([*wsgi, "--threads", "4", "hello:app", "{port}"], "/"),
        "bjoern": ([f"{python}/python", "bj.py", "{port}"], "/"),
        "granian": ([*granian, "hello:app"], "/"),
        "granian-as-it-comes": ([f"{python}/granian", "--interface", "wsgi", "--port", "{port}", "hello:app"], "/"),
        "gunicorn": ([*gunicorn, "hello:app"], "/"),
        "flask-wsgi": ([*wsgi, "flasky:app", "{port}"], "/"),
        "flask-gunicorn": ([*gunicorn, "flasky:app"], "/"),
        "flask-granian": ([*granian, "flasky:app"], "/"),
        "files": ([prony, "host", "hello:app", "{port}", "--workers", "1", "--static", f"{work}/files"], "/static/ten.txt"),
        "files-nginx": (["nginx", "-c", f"{work}/nginx-{{port}}.conf"], "/static/ten.txt"),
        "files-nginx-cache": (["nginx", "-c", f"{work}/nginx-{{port}}.conf"], "/static/ten.txt"),
    }


COMPARISONS = {
    "lua": ["lua", "bjoern"],
    "python": ["wsgi", "wsgi-threads", "bjoern", "granian", "granian-as-it-comes"],
    "flask": ["flask-wsgi", "flask-gunicorn", "flask-granian"],
    "files": ["files", "files-nginx", "files-nginx-cache"],
}


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
    """Private memory of the youngest process, which is the worker; and its share of what is shared."""
    with open(f"/proc/{family(pid)[-1]}/smaps_rollup") as rollup:
        lines = dict(line.split(":", 1) for line in rollup if ":" in line)
    number = lambda name: int(lines[name].split()[0])
    return number("Private_Clean") + number("Private_Dirty"), number("Pss")


class Server:
    def __init__(self, name, command, path, work):
        self.name, self.path, self.port = name, path, free_port()
        if "nginx" in name:
            more = "open_file_cache max=100; open_file_cache_valid 1s;" if "cache" in name else ""
            with open(f"{work}/nginx-{self.port}.conf", "w") as conf:
                conf.write(NGINX.format(dir=work, port=self.port, more=more))
        command = [word.replace("{port}", str(self.port)) for word in command]
        env = {**os.environ, "PYTHONPATH": work, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], cwd=work, env=env, stdout=subprocess.DEVNULL)

    def wait(self):
        due = time.monotonic() + 20
        while time.monotonic() < due and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
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
    return f"{middle:{form}} [{min(values):{form}}–{max(values):{form}}]"


def compare(title, names, options, work):
    known = servers(os.path.abspath(options.venv), work)
    running = [Server(name, *known[name], work) for name in names]
    try:
        for server in running:
            server.wait()
            server.ask(1)
        rounds = {server.name: [] for server in running}
        for turn in range(options.rounds):
            for server in running[turn % len(running):] + running[:turn % len(running)]:
                rounds[server.name].append(server.ask(options.seconds))
        print(f"\n{title}, {options.rounds} rounds of {options.seconds} s\n")
        print("| server | CPU, µs a request | requests/s | CPU ratio of the first | rate ratio of the first | private (Pss) of a process, KiB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        first = rounds[names[0]]
        for server in running:
            own = rounds[server.name]
            costs = [mine[0] / other[0] for mine, other in zip(first, own)]
            rates = [mine[1] / other[1] for mine, other in zip(first, own)]
            private, pss = private_kib(server.process.pid)
            print(f"| {server.name} | {spread([cost for cost, _ in own], '.2f')} | {spread([rate for _, rate in own], ',.0f')} "
                  f"| {spread(costs, '.2f')} | {spread(rates, '.2f')} | {private:,} ({pss:,}) |", flush=True)
    finally:
        for server in running:
            server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", choices=COMPARISONS, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        os.mkdir(f"{work}/files")
        for name, text in [("hello.lua", LUA), ("hello.py", WSGI), ("flasky.py", FLASK), ("bj.py", BJOERN),
                           ("files/ten.txt", "0123456789abcdef" * 640)]:
            with open(f"{work}/{name}", "w") as file:
                file.write(text)
        for title in options.only or COMPARISONS:
            compare(title, COMPARISONS[title], options, work)


main()
