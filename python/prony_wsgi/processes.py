"""What a process of the server needs beside serving: to end, and to be forked by a view."""

import atexit
import os
import signal
import sys
import threading
from typing import NoReturn

# Those that the server hears.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def begin() -> None:
    """Has SIGINT left to the server, and all signals to whatever an application forks."""
    # No KeyboardInterrupt is wanted besides.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.register_at_fork(
        before=_hold_signals,
        after_in_parent=_let_signals_through,
        after_in_child=_forget_the_server,
    )


# Of each thread: the signals that were blocked before it forked.
_before = threading.local()


def _hold_signals() -> None:
    """A signal that reaches the new process before it has forgotten the server waits for that."""
    _before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _let_signals_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _before.mask)


def _forget_the_server() -> None:
    """What the server does at a signal would reach the process that this one came from."""
    for number in SIGNALS:
        handler = signal.getsignal(number)
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
    _let_signals_through()


def end(code: int) -> NoReturn:
    """Ends the process, also where a thread of the application never returns."""
    if not any(thread.name.startswith("prony-wsgi-") for thread in threading.enumerate()):
        sys.exit(code)
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # Nobody reads it any more.
            continue
    os._exit(code)
