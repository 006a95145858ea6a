"""Whether a machine is idle enough for figures that are kept: what the scripts in this folder share.

A page that a script writes carries the load average from before it began, and `cargo test -p prony-testkit --test house`
holds each page against LOAD_MAX.
"""

import os
import sys
import time

# Load average of the last minute above which no figures are kept.
LOAD_MAX = 0.5
# How long what ran before, the build for one, may take to be forgotten by the average.
PATIENCE_S = 300
POLL_S = 5


def load_before(out, patience_s=PATIENCE_S):
    """The load average, once the machine is idle. Ends the program where it does not become idle and figures would be
    kept in `out`; where they are only printed (`-`) it says that they are not fit to be kept."""
    due = time.monotonic() + (0 if out == "-" else patience_s)
    while (load := os.getloadavg()[0]) > LOAD_MAX and time.monotonic() < due:
        time.sleep(POLL_S)
    if load > LOAD_MAX:
        print(f"other programs run here (load average {load:.2f}, more than {LOAD_MAX}): the figures are not fit to be kept",
              file=sys.stderr)
        if out != "-":
            sys.exit(f"nothing was measured and {out} is as it was; end what else runs, or look at figures with --out -")
    return load
