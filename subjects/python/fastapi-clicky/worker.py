"""Uvicorn in a worker of gunicorn, on uvloop and httptools."""

from uvicorn_worker import UvicornWorker


class Worker(UvicornWorker):
    CONFIG_KWARGS = {"loop": "uvloop", "http": "httptools", "timeout_graceful_shutdown": 2}
