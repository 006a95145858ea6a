"""Turns what h2load prints (standard input) into the line of a client: translate.py CONNECTIONS THREADS"""

import json
import re
import sys

connections, threads = map(int, sys.argv[1:3])
text = sys.stdin.read()
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def find(pattern):
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        sys.exit(f"h2load printed nothing that matches {pattern}")
    return found


rate = float(find(r"^finished in [\d.]+m?s, ([\d.]+) req/s")[1])
requests = find(
    r"^requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout"
)
# Those that it has started and not done are not all sent when it stops: how many were, it does not say.
_, done, succeeded, failed, errored, timeout = map(int, requests.groups())
body = int(find(r"^traffic: .*\((\d+)\) data$")[1])
times = find(r"^time for request: +([\d.]+)(\w+) +([\d.]+)(\w+) +([\d.]+)(\w+) +([\d.]+)(\w+) ").groups()
low, high, mean, stdev = (float(value) * UNITS[unit] for value, unit in zip(times[::2], times[1::2]))
kinds = {"status": failed - errored - timeout, "errored": errored, "timeout": timeout}
latency = {"count": done, "min": round(low), "max": round(high), "mean": mean, "stdev": stdev}
latency |= dict.fromkeys(["p50", "p75", "p90", "p99", "p99_9", "p99_99"], 0)
print(json.dumps({
    "measure": "requests",
    "threads": threads,
    "count": succeeded,
    # It divides by the time that it was asked to run for.
    "elapsed_ns": round(done / rate * 1e9) if done else 1,
    "bytes": body,
    "client": {
        "connections": connections,
        "failed": failed,
        "failed_by_kind": {kind: count for kind, count in kinds.items() if count},
        "latency": latency,
    },
}))
