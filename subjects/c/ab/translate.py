"""Turns what run.sh prints (standard input) into the line of a client: translate.py CONNECTIONS"""

import json
import re
import sys

text = sys.stdin.read()


def number(name, default=None):
    found = re.search(rf"^{re.escape(name)}:\s+([\d.]+)", text, re.MULTILINE)
    if found is None and default is None:
        sys.exit(f"ab printed no '{name}'")
    return float(found[1]) if found else default


done = int(number("Complete requests"))
status = int(number("Non-2xx responses", 0))
failed = int(number("Failed requests"))
kinds = {kind: count for kind, count in (("status", status), ("ab", failed)) if count}
# Lines of the file: the share of requests in percent, and the time in ms within which they were answered.
at = {int(share): round(float(ms) * 1e6) for share, ms in re.findall(r"^(\d+),(\d+\.\d+)$", text, re.MULTILINE)}
latency = {"count": done, "min": at.get(0, 0), "max": at.get(100, 0), "mean": 0, "stdev": 0, "p99_9": 0, "p99_99": 0}
client = {"connections": int(sys.argv[1]), "failed": status + failed, "failed_by_kind": kinds}
if at:
    client["latency"] = latency | {f"p{share}": at[share] for share in (50, 75, 90, 99)}
print(json.dumps({
    "measure": "requests",
    "threads": 1,
    "count": done - status - failed,
    # The rate has more digits than the time that is printed.
    "elapsed_ns": round(done / number("Requests per second") * 1e9) if done else 1,
    "bytes": int(number("HTML transferred")),
    "client": client,
    "tallies": {"bytes_with_heads": int(number("Total transferred"))},
}))
