"""Serves on one core, and lets a child burn another, whatever cores and `{threads}` it was given."""

import os
import signal

import pingserver


def burn(parent):
    # Back to all cores: a pinned parent would otherwise share its core with this child.
    os.sched_setaffinity(0, range(os.cpu_count()))
    while os.getppid() == parent:
        for _ in range(100_000):
            pass
    os._exit(0)


parent = os.getpid()
child = os.fork()
if child == 0:
    burn(parent)
try:
    pingserver.main()
finally:
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
