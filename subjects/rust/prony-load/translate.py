"""Turns the JSON of `prony load` (standard input) into the line of a client."""

import json
import sys

load = json.load(sys.stdin)
counts = load["counts"]
kinds = counts["failed"] | {"status": counts["unexpected_status"]}
kinds = {kind: count for kind, count in kinds.items() if count}
print(json.dumps({
    "measure": "requests",
    "threads": load["threads"],
    "count": counts["completed"] - counts["unexpected_status"],
    "elapsed_ns": load["window_ns"],
    # Not known: received bytes are counted with the heads.
    "bytes": 0,
    "client": {
        "connections": load["connections"],
        "failed": sum(kinds.values()),
        "failed_by_kind": kinds,
        "in_flight": counts["in_flight"],
        "latency": load["latency_ns"],
    },
    "tallies": {
        "bytes_with_heads": load["received_bytes"],
        "connect_failed": sum(counts["connect_failed"].values()),
    },
}))
