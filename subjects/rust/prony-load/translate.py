"""Turns the JSON of `prony load` (standard input) into the line of a client."""

import json
import sys

# A latency that never ended.
NEVER = 2**64 - 1

load = json.load(sys.stdin)
counts = load["counts"]
kinds = counts["failed"] | {"status": counts["unexpected_status"]}
kinds = {kind: count for kind, count in kinds.items() if count}
answered = counts["completed"] - counts["unexpected_status"]
# 0 is what is not given.
latency = {name: 0 if value == NEVER else value for name, value in load["latency_ns"].items()}
# What was in flight at the end has a latency, too, once it is answered, and is no answer of the window.
latency["count"] = min(latency["count"] - latency.pop("infinite", 0), answered)
print(json.dumps({
    "measure": "requests",
    "threads": load["threads"],
    "count": answered,
    "elapsed_ns": load["window_ns"],
    # Not known: received bytes are counted with the heads.
    "bytes": 0,
    "client": {
        "connections": load["connections"],
        "failed": sum(kinds.values()),
        "failed_by_kind": kinds,
        "in_flight": counts["in_flight"],
        "latency": latency,
    },
    "tallies": {
        "bytes_with_heads": load["received_bytes"],
        "connect_failed": sum(counts["connect_failed"].values()),
    },
}))
