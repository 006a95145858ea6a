"""How gunicorn serves the app: one process per worker, all of them on one count, which the master's keeper stores."""

import logging
import sys

import settings
from counting import count
from keeper import Keeper
from stores import open_store

bind = settings.address
workers = settings.workers
worker_class = "worker.Worker"
backlog = 65535
keepalive = 75
graceful_timeout = 2
loglevel = settings.log_level
accesslog = "-" if settings.access_log else None
# Its socket would be a file in the user's home, which several instances would share.
control_socket_disable = True

_keeper = None


def on_starting(server):
    """Before the sockets and the workers: loads the count."""
    global _keeper
    logging.basicConfig(stream=sys.stdout, level=settings.log_level.upper(), format="%(levelname)s %(name)s %(message)s")
    try:
        store = open_store(settings)
    except Exception as error:
        raise SystemExit(f"clicky: {error}") from None
    if store is not None:
        count.add(store.known)
        _keeper = Keeper(store, count, settings.sync_every_s)


def on_exit(server):
    """After the workers: what they have counted is stored."""
    if _keeper is not None and not _keeper.finish():
        raise SystemExit(1)
