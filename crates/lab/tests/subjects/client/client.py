"""Asks for a page over keep-alive connections and prints what a client prints; MODE spoils one thing.

    client.py WORK URL CONNECTIONS THREADS

In `requests` it asks five times on each connection. Without MODE it is right.
"""

import http.client
import json
import os
import signal
import sys
import time
import urllib.parse

work, url, connections, threads = sys.argv[1], urllib.parse.urlsplit(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
mode = os.environ.get("MODE", "")
started = time.monotonic_ns()
count = read_bytes = 0
opened = [http.client.HTTPConnection(url.hostname, url.port, timeout=5) for _ in range(connections)]
for connection in opened:
    for _ in range(5 if work == "requests" else 1):
        connection.request("GET", url.path)
        read_bytes += len(connection.getresponse().read())
        count += 1
print("talk", file=sys.stderr, flush=True)
if mode == "hangs":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("asked", flush=True)
    time.sleep(600)
if mode == "waits":
    time.sleep(0 if os.path.exists(os.environ["READY"]) else 600)
if mode == "forks":
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    time.sleep(600)
if mode == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
if mode == "exits":
    print("no such host", file=sys.stderr)
    sys.exit(3)
if mode == "silent":
    sys.exit(0)
if mode == "floods":
    while True:
        sys.stdout.write("x" * 65536)
if mode == "raw":
    print(f"done {count} {read_bytes} {time.monotonic_ns() - started}")
    sys.exit(0)
line = {
    "measure": work,
    "threads": threads,
    "count": count,
    "elapsed_ns": time.monotonic_ns() - started,
    "bytes": read_bytes,
    "client": {"connections": connections + (mode == "miscounts"), "failed": 0, "in_flight": 0},
}
print('{"measure":7' if mode == "garbage" else json.dumps(line))
