"""Turns what `curl --write-out %{json}` prints (standard input) into the line of a client: translate.py CONNECTIONS BYTES"""

import json
import sys

connections, payload_bytes = map(int, sys.argv[1:3])
if connections != 1:
    sys.exit("curl is run for one URL, on one connection")
curl = json.load(sys.stdin)
is_whole = curl["http_code"] == 200 and curl["size_download"] == payload_bytes
kinds = {} if is_whole else {"status" if curl["http_code"] != 200 else "length": 1}
print(json.dumps({
    "measure": "downloads",
    "threads": 1,
    "count": int(is_whole),
    "elapsed_ns": round(curl["time_total"] * 1e9),
    "bytes": payload_bytes if is_whole else 0,
    "client": {"connections": 1, "failed": int(not is_whole), "failed_by_kind": kinds, "in_flight": 0},
}))
