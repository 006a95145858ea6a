"""Counts of the generator beside those of who received: to the unit."""

import contextlib
import os
import shutil
import subprocess
import time

from instruments import SERVER_CORE, Broken, Responder, Skipped, placed, prony_load
from rows import holds, is_equal, row

NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; worker_rlimit_nofile 4096;
events {{ worker_connections 2048; }}
http {{
  access_log {folder}/access.log combined; keepalive_requests {requests}; client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}{tls}; location /hello {{ default_type text/plain; return 200 "Hello, World!"; }} }}
}}
"""


def identities(report):
    """What must be true of a report by itself."""
    counts = report["counts"]
    of_all = (counts["warmup_completed"] + counts["warmup_failed"] + counts["completed"] + sum(counts["failed"].values())
              + counts["in_flight"])
    # Those that were sent in the drain are in flight, too: they were due when the window ended.
    yield is_equal("sent", "warm-up + completed + failed + in flight", counts["sent"], of_all)
    yield is_equal("in flight at the window's end", "drained + drain failed + abandoned", counts["in_flight"],
                   counts["drained"] + counts["drain_failed"] + counts["abandoned"])
    arrivals = report.get("arrivals")
    if arrivals:
        yield is_equal("scheduled", "sent + waiting + dropped", arrivals["scheduled"],
                       arrivals["sent"] + arrivals["waiting"] + arrivals["dropped"])


RUNS = {
    "closed": (["-c", 100, "-d", "1s"], [], 1),
    "closed-n": (["-c", 7, "-n", 20_000], [], 1),
    "closed-threads": (["-c", 100, "-d", "1s", "--warmup", "300ms"], [], 2),
    "open": (["-c", 100, "-d", "1s", "--rate", 5_000], [], 2),
    "open-poisson": (["-c", 100, "-d", "1s", "--rate", 5_000, "--arrival", "poisson", "--warmup", "300ms"], [], 2),
    # 1,000 a second are answered of 3,000: the queue reaches its limit, and arrivals are dropped.
    "overloaded": (["-c", 10, "-d", "1s", "--rate", 3_000, "--queue", 500], ["--serial", "--delay", 1000], 1),
}

for run_name, (load_words, server_words, run_threads) in RUNS.items():
    @row(f"accounting/{run_name}", 3)
    def against_responder(folder, load_words=load_words, server_words=server_words, threads=run_threads):
        with Responder(*server_words) as server:
            report = prony_load(folder, server.url, *load_words, threads=threads, may_fail=True).report
            received = server.count()["requests"]
        yield is_equal("sent", "requests that the server received", report["counts"]["sent"], received)
        yield from identities(report)
        if "--queue" in load_words:
            yield holds("overloaded is said, and arrivals were dropped",
                        report["arrivals"]["overloaded"] and report["arrivals"]["dropped"] > 0)


@contextlib.contextmanager
def nginx(folder, port, requests=1_000_000_000, tls=False):
    """nginx that logs each request, over TLS also of HTTP/2; ended, with all of its log written, when the block is."""
    if not shutil.which("nginx"):
        raise Skipped("needs nginx: apt-get install nginx")
    page = os.path.join(folder, "nginx.conf")
    with open(page, "w") as file:
        file.write(NGINX.format(folder=folder, port=port, requests=requests, tls=certified(folder) if tls else ""))
    process = subprocess.Popen(["nginx", "-p", folder, "-c", page], preexec_fn=placed(SERVER_CORE), stderr=subprocess.PIPE)
    try:
        wait_for(process, port)
        yield
    finally:
        process.send_signal(3)  # it ends when all that it has begun is done
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stderr.close()


def certified(folder):
    """What nginx is told of TLS, with a certificate for this row alone."""
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return f" ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}"


def wait_for(process, port):
    """Until it listens: asked of the kernel's table, because a connection would be counted."""
    due = time.monotonic() + 10
    wanted = f":{port:04X} 00000000:0000 0A"
    while time.monotonic() < due:
        with open("/proc/net/tcp") as table:
            if any(wanted in line for line in table):
                return
        if process.poll() is not None:
            raise Broken(f"nginx: {process.stderr.read().decode().strip()}")
        time.sleep(0.02)
    raise Broken("nginx does not listen")


for run_name in ("closed", "closed-n", "open-poisson"):
    @row(f"accounting/nginx-{run_name}", 3)
    def against_nginx(folder, run_name=run_name):
        load_words, _, threads = RUNS[run_name]
        port = 18_080
        with nginx(folder, port):
            report = prony_load(folder, f"http://127.0.0.1:{port}/hello", *load_words, threads=threads, may_fail=True).report
        with open(os.path.join(folder, "access.log")) as log:
            lines = sum(1 for _ in log)
        yield is_equal("sent", "lines of nginx's log", report["counts"]["sent"], lines)
        yield from identities(report)
