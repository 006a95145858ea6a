"""Turns what overhead_threaded or overhead_async prints (standard input) into the line of a client:
translate.py CONNECTIONS PAYLOAD_BYTES"""

import json
import re
import statistics
import sys

connections, payload = map(int, sys.argv[1:3])
text = sys.stdin.read()
done = re.search(r"^All done in ([\d.e+-]+) seconds$", text, re.MULTILINE)
if done is None:
    sys.exit("it printed no time for the whole")
received = [int(number) for number in re.findall(r"finished: (\d+) bytes received in", text)]
# It reads to the end of the connection and looks at nothing: head and body are one number, and what is less than a body
# was cut off.
whole = sum(number > payload for number in received)
kinds = {"short": len(received) - whole, "error": connections - len(received)}


def spread(values):
    return {
        "count": len(values),
        "min": min(values),
        "mean": statistics.mean(values),
        "p50": statistics.median(values),
        "stdev": statistics.stdev(values) if len(values) > 1 else 0.0,
        "max": max(values),
    }


def printed(pattern, factor):
    return [float(number) * factor for number in re.findall(pattern, text)]


# What it measures of each connection. A download ends with the connection. With threads it begins before the first receive,
# with poll() at the first that gives bytes: how long the server took to answer is in the one and not in the other.
downloads = [
    (int(bytes_), float(seconds))
    for bytes_, seconds in re.findall(r"finished: (\d+) bytes received in ([\d.e+-]+) seconds", text)
    if int(bytes_) > payload and float(seconds) > 0
]
figures = {
    "socket_ns": printed(r"Socket created in ([\d.e+-]+) us", 1e3),
    "setup_ns": printed(r"setup completed in ([\d.e+-]+) us", 1e3),
    "download_ns": [seconds * 1e9 for _, seconds in downloads],
    "rate_bytes_per_s": [number / seconds for number, seconds in downloads],
}
print(json.dumps({
    "measure": "downloads",
    "threads": 1,
    "count": whole,
    "elapsed_ns": max(1, round(float(done[1]) * 1e9)),
    "bytes": whole * payload,
    "client": {
        "connections": connections,
        "failed": sum(kinds.values()),
        "failed_by_kind": {kind: count for kind, count in kinds.items() if count},
    },
    "figures": {name: spread(values) for name, values in figures.items() if values},
    "tallies": {"bytes_with_heads": sum(received)},
}))
