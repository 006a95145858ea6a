"""Turns the line of `prony fetch --json` (standard input) into the line of a client: translate.py CONNECTIONS BYTES"""

import json
import sys

connections, payload_bytes = map(int, sys.argv[1:3])
if connections != 1:
    sys.exit("prony fetch is run for one URL, on one connection")
fetched = json.load(sys.stdin)
error = fetched["error"]
is_whole = error is None and fetched["received_bytes"] == payload_bytes
kinds = {} if is_whole else {error["kind"] if error else "length": 1}
print(json.dumps({
    "measure": "downloads",
    "threads": 1,
    "count": int(is_whole),
    "elapsed_ns": fetched["took_ns"],
    "bytes": payload_bytes if is_whole else 0,
    "client": {"connections": 1, "failed": int(not is_whole), "failed_by_kind": kinds, "in_flight": 0},
}))
