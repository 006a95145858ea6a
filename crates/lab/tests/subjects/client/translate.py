"""Turns what client.py prints with MODE=raw into a line of JSON: translate.py WORK CONNECTIONS THREADS."""

import json
import os
import sys

if os.environ.get("TRANSLATION") == "fails":
    sys.exit("cannot read this")
for line in sys.stdin:
    if line.startswith("done "):
        count, read_bytes, elapsed_ns = map(int, line.split()[1:])
        line = {"measure": sys.argv[1], "threads": int(sys.argv[3]), "count": count, "elapsed_ns": elapsed_ns}
        line |= {"bytes": read_bytes, "client": {"connections": int(sys.argv[2]), "failed": 0}}
        print(json.dumps(line))
