"""What a request costs the generator beside other clients, by protocol: turns of two seconds each against one nginx, which counts."""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import urllib.request

from accounting import wait_for
from instruments import PRONY, SERVER_CORE, Broken, Skipped, placed, run_client, time_of
from rows import Figure, row
from speed import turns

TURN_S = 2
SECURE, HTTP2, PLAIN, STATUS = 18_081, 18_082, 18_083, 18_084

# One worker; every connection stays open, and no log is written.
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/errors; worker_rlimit_nofile 4096;
events {{ worker_connections 2048; }}
http {{
    access_log off; keepalive_requests 1000000000;
    server {{ listen 127.0.0.1:%d; location / {{ return 200 "{page}"; }} }}
    server {{ listen 127.0.0.1:%d http2; location / {{ return 200 "{page}"; }} }}
    server {{
        listen 127.0.0.1:%d ssl;
        ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key; ssl_protocols TLSv1.3;
        location / {{ return 200 "{page}"; }}
    }}
    server {{ listen 127.0.0.1:%d; location / {{ stub_status; }} }}
}}
""" % (PLAIN, HTTP2, SECURE, STATUS)


def needed(program, package):
    if not shutil.which(program):
        raise Skipped(f"needs {program}: {package}")


class Nginx:
    """What a client drives. It counts every request, whatever a client says."""

    def __init__(self, port):
        scheme = "https" if port == SECURE else "http"
        self.url = f"{scheme}://127.0.0.1:{port}/"

    def count(self):
        """Requests so far, without those that ask for the count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{STATUS}/") as answer:
            counts = re.search(r"requests\s+\d+ \d+ (\d+)", answer.read().decode())
        if not counts:
            raise Broken("nginx does not say how many requests there were")
        self.asked = getattr(self, "asked", 0) + 1
        return {"requests": int(counts[1]) - self.asked}


@contextlib.contextmanager
def nginx(folder, port):
    needed("nginx", "apt-get install nginx")
    needed("openssl", "apt-get install openssl")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
            "-keyout", f"{folder}/key", "-out", f"{folder}/certificate"]
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    page = os.path.join(folder, "nginx.conf")
    with open(page, "w") as file:
        file.write(NGINX.format(folder=folder, page="x" * 1024))
    process = subprocess.Popen(["nginx", "-p", folder, "-c", page], preexec_fn=placed(SERVER_CORE), stderr=subprocess.PIPE)
    try:
        wait_for(process, STATUS)
        yield Nginx(port)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def cpu_of(words):
    """A client's CPU in ns a request that nginx received while it ran, its start included."""
    def turn(server):
        before = server.count()["requests"]
        ended = run_client([*words, server.url])
        requests = server.count()["requests"] - before
        if ended.status != 0 or requests < 1000:
            raise Broken(f"{words[0]} ended with {ended.status} after {requests} requests: {ended.errors.strip()} {ended.out.strip()}")
        return ended.cpu_ns / requests, requests
    return turn


def beside(server, what, ours, theirs, limit=None):
    """The median of the pairs' ratios with its quartiles; and what both can send with one processor."""
    pairs = turns(server, cpu_of(ours), cpu_of(theirs))
    ratios = [a[0] / b[0] for a, b in pairs]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    (own, own_rate), (other, other_rate) = ([statistics.median(side[of] for side in sides) for of in (0, 1)] for sides in zip(*pairs))
    return Figure(
        f"{what}: {time_of(own)} beside {theirs[0]} {time_of(other)}, CPU a request; "
        f"{own_rate / TURN_S:.0f} and {other_rate / TURN_S:.0f} requests/s",
        f"{ratio:.3f} (quartiles {low:.3f}–{high:.3f}, {len(ratios)} pairs)",
        *([f"≤ {limit}", ratio <= limit, True] if limit else []))


def prony(*words):
    return [PRONY, "load", "-t", 1, "-d", f"{TURN_S}s", *words]


def h2load(*words):
    needed("h2load", "apt-get install nghttp2-client")
    return ["h2load", "-t", 1, "-D", TURN_S, *words]


def oha(*words):
    needed("oha", "cargo install oha")
    return ["oha", "--no-tui", "--worker-threads", 1, "-z", f"{TURN_S}s", *words]


def wrk(*words):
    needed("wrk", "apt-get install wrk")
    return ["wrk", "-t1", f"-d{TURN_S}s", *words]


@row("clients/http2", 90, always=False)
def streams(folder):
    ours = prony("-c", 10, "--http2", "--streams", 10)
    with nginx(folder, HTTP2) as server:
        yield beside(server, "HTTP/2, 10 × 10", ours, h2load("-c", 10, "-m", 10), 1.0)
        yield beside(server, "HTTP/2, 10 × 10", ours, oha("-c", 10, "-p", 10, "--http2"), 0.6)


@row("clients/http1", 90, always=False)
def plain(folder):
    ours = prony("-c", 100)
    with nginx(folder, PLAIN) as server:
        yield beside(server, "HTTP/1.1, 100", ours, wrk("-c", 100))
        yield beside(server, "HTTP/1.1, 100", ours, oha("-c", 100))


@row("clients/tls", 135, always=False)
def secure(folder):
    ours = prony("-c", 100, "--insecure")
    with nginx(folder, SECURE) as server:
        yield beside(server, "TLS 1.3, 100", ours, h2load("--h1", "-c", 100), 0.95)
        yield beside(server, "TLS 1.3, 100", ours, wrk("-c", 100))
        yield beside(server, "TLS 1.3, 100", ours, oha("-c", 100, "--insecure"))
