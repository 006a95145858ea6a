"""Leaves a grandchild that belongs to nobody: other session, other process group, deaf to SIGTERM.

Its command line is `sleep 600.PORT`: it ends by itself after ten minutes, and a test finds it by the port.
"""

import os
import signal

import pingserver


def leak(port):
    if os.fork() != 0:
        os.wait()
        return
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    # What is ignored stays ignored over exec.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execvp("sleep", ["sleep", f"600.{port}"])


leak(pingserver.arguments().port)
pingserver.main()
