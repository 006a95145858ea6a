"""Turns what wrk and latency.lua print (standard input) into the line of a client: translate.py CONNECTIONS THREADS"""

import json
import sys

connections, threads = map(int, sys.argv[1:3])
lines = [line for line in sys.stdin if line.startswith('{"wrk":')]
if len(lines) != 1:
    sys.exit("wrk printed no summary")
wrk = json.loads(lines[0])["wrk"]
# A connection that cannot be made is not a request. A late answer is an answer.
kinds = {kind: wrk[kind] for kind in ("read", "write", "status") if wrk[kind]}
client = {"connections": connections, "failed": sum(kinds.values()), "failed_by_kind": kinds}
if wrk["latency"]:
    client["latency"] = wrk["latency"]
print(json.dumps({
    "measure": "requests",
    "threads": threads,
    "count": wrk["requests"] - wrk["status"],
    "elapsed_ns": wrk["duration_us"] * 1000,
    "bytes": 0,
    "client": client,
    "tallies": {"connect_failed": wrk["connect"], "later_than_2_s": wrk["timeout"], "bytes_with_heads": wrk["bytes"]},
}))
