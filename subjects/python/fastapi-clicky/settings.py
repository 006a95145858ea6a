"""What the environment says."""

import logging
import os
import re

UNITS_S = {"ms": 0.001, "s": 1, "m": 60}
LEVELS = {"error": "error", "warn": "warning", "info": "info", "debug": "debug"}


def seconds(text):
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)", text)
    value = float(found[1]) * UNITS_S[found[2]] if found else 0
    if value <= 0:
        raise SystemExit(f"clicky: CLICKY_SYNC_FREQUENCY is not a time such as 500ms, 1s or 2m: {text}")
    return value


def workers(text):
    if not text.isdigit() or int(text) < 1:
        raise SystemExit("clicky: CLICKY_THREADS is not a number from 1")
    return int(text)


def one_of(backend):
    if backend not in ("none", "file", "redis"):
        raise SystemExit(f"clicky: CLICKY_BACKEND is none, file or redis, not {backend}")
    return backend


get = os.environ.get
address = get("SERVER_ADDRESS", "127.0.0.1:8080")
workers = workers(get("CLICKY_THREADS", str(os.cpu_count() or 1)))
backend = one_of(get("CLICKY_BACKEND", "file"))
counter_file = get("CLICKY_COUNTER_FILE", "clicky.txt")
redis_url = get("CLICKY_REDIS_URL", "redis://127.0.0.1:6379")
sync_every_s = seconds(get("CLICKY_SYNC_FREQUENCY", "1s"))
# Python has no level `off`; nothing here says anything critical.
log_level = "critical" if "CLICKY_NO_LOGGING" in os.environ else LEVELS.get(get("RUST_LOG", "info"), "critical")
access_log = logging.getLevelName(log_level.upper()) <= logging.INFO
