"""The command `prony-wsgi`."""

import signal
import sys

from prony_wsgi import _prony_wsgi


def main() -> int:
    """Runs the command; yields its exit code."""
    # The server looks after this signal, and no KeyboardInterrupt is wanted besides.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    worker = [sys.executable, "-m", "prony_wsgi.worker"]
    return _prony_wsgi.main(["prony-wsgi", *sys.argv[1:]], worker)


if __name__ == "__main__":
    sys.exit(main())
