"""Turns what run.sh makes hey print (standard input) into the line of a client: translate.py CONNECTIONS THREADS"""

import json
import sys

connections, threads = map(int, sys.argv[1:3])
hey = json.load(sys.stdin)
errors = sum(count for _, count in hey["errors"])
not_sent = sum(count for message, count in hey["errors"] if "dial tcp" in message)
answered = hey["requests"] - errors
status = sum(count for status, count in hey["statuses"] if count and not 200 <= status < 300)
if status and hey["kept"] < answered:
    sys.exit(f"hey keeps {hey['kept']} results, and of {answered} answers some were not 2xx: how many is not known")
kinds = {kind: count for kind, count in (("error", errors - not_sent), ("status", status)) if count}


def ns(seconds):
    return round(seconds * 1e9)


at = {share: ns(latency) for share, latency in hey["percentiles_s"]}
latency = {
    "count": hey["kept"],
    "min": ns(hey["fastest_s"]),
    # The sum is over all answers, the rest over those that were kept.
    "mean": hey["sum_s"] / answered * 1e9 if answered else 0,
    "stdev": 0,
    **{f"p{p}": at.get(p, 0) for p in (50, 75, 90, 99)},
    "p99_9": 0,
    "p99_99": 0,
    "max": ns(hey["slowest_s"]),
}
print(json.dumps({
    "measure": "requests",
    "threads": threads,
    "count": answered - status,
    "elapsed_ns": hey["total_ns"],
    "bytes": hey["bytes"],
    "client": {
        "connections": connections,
        "failed": sum(kinds.values()),
        "failed_by_kind": kinds,
        # It lets the last request of each connection end, and counts it.
        "in_flight": 0,
        "latency": latency,
    },
    "tallies": {"connect_failed": not_sent},
}))
