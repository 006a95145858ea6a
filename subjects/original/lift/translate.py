"""Turns what lift_benchmark prints (standard input) into the line of a client: translate.py CONNECTIONS THREADS"""

import json
import re
import sys

connections, threads = map(int, sys.argv[1:3])
text = sys.stdin.read()
done = re.search(r"^\s*(\d+) requests in (\d+)s$", text, re.MULTILINE)
if done is None:
    sys.exit("lift_benchmark printed no number of requests")
# It counts what it has answers of, whatever their status, and says of failures only how many there were.
failed = re.search(r"^\s*(\d+) errors$", text, re.MULTILINE)
failed = int(failed[1]) if failed else 0
print(json.dumps({
    "measure": "requests",
    "threads": threads,
    "count": int(done[1]) - failed,
    # It divides by the time that it was asked to run for.
    "elapsed_ns": int(done[2]) * 10**9,
    "bytes": 0,
    "client": {"connections": connections, "failed": failed, "failed_by_kind": {"error": failed} if failed else {}},
}))
