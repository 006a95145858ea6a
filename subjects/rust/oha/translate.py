"""Turns the JSON of oha (standard input) into the line of a client: translate.py CONNECTIONS THREADS"""

import json
import sys

connections, threads = map(int, sys.argv[1:3])
oha = json.load(sys.stdin)
summary, at = oha["summary"], oha["latencyPercentiles"]
statuses = {int(status): count for status, count in oha["statusCodeDistribution"].items()}
errors = dict(oha["errorDistribution"])
# What was under way when the time was over is neither answered nor failed. Not all of it had been sent: how much, oha
# does not say.
errors.pop("aborted due to deadline", None)
# A connection that cannot be made is not a request.
not_sent = [message for message in errors if "refused" in message.lower() or "connect" in message.lower()]
connect_failed = sum(errors.pop(message) for message in not_sent)
kinds = errors | {"status": sum(count for status, count in statuses.items() if not 200 <= status < 300)}
kinds = {kind: count for kind, count in kinds.items() if count}
answered = sum(statuses.values())


def ns(seconds):
    """From seconds; oha has nothing where nothing was answered."""
    return round((seconds or 0) * 1e9)


latency = {
    "count": answered,
    "min": ns(summary["fastest"]),
    "mean": (summary["average"] or 0) * 1e9,
    "stdev": 0,
    **{"p" + p.replace(".", "_"): ns(at[f"p{p}"]) for p in ("50", "75", "90", "99", "99.9", "99.99")},
    "max": ns(summary["slowest"]),
}
print(json.dumps({
    "measure": "requests",
    "threads": threads,
    "count": answered - kinds.get("status", 0),
    "elapsed_ns": ns(summary["total"]),
    "bytes": summary["totalData"],
    "client": {
        "connections": connections,
        "failed": sum(kinds.values()),
        "failed_by_kind": kinds,
        "latency": latency,
    },
    "tallies": {"connect_failed": connect_failed},
}))
