"""Where the count is kept: a file of its own, or a key in Redis that others add to as well.

`save(count)` stores the count as it is here and returns what has to be added to it, because others have stored theirs.
"""

import os

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

KEY = "CLICKY_COUNTER"
REDIS_TIMEOUT_S = 1.0


class FileStore:
    def __init__(self, path):
        self.path = path
        self.known = 0
        try:
            with open(path) as file:
                text = file.read().strip()
        except FileNotFoundError:
            return
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{path} is not a count")
        self.known = int(text)

    def save(self, count):
        """Whole or not at all: a new file is on the disk before it takes the name of the old one."""
        if count != self.known:
            temporary = f"{self.path}.new"
            with open(temporary, "w") as file:
                file.write(str(count))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
            self.sync_folder()
            self.known = count
        return 0

    def sync_folder(self):
        folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class RedisStore:
    def __init__(self, url):
        # A command whose answer was lost may have been done: it is not sent again at once, but with the next turn.
        self.client = redis.Redis.from_url(
            url, socket_timeout=REDIS_TIMEOUT_S, socket_connect_timeout=REDIS_TIMEOUT_S, retry=Retry(NoBackoff(), 0)
        )
        # What Redis had after the last save, and so what is here beside what came since.
        self.known = int(self.client.get(KEY) or 0)
        # The keeper, another process, opens a connection of its own.
        self.client.close()

    def save(self, count):
        """Adds what came since the last save, so that several instances share one key. Where the key is gone, it begins
        again with what was known of it."""
        with self.client.pipeline(transaction=True) as pipe:
            _, total = pipe.set(KEY, self.known, nx=True).incrby(KEY, count - self.known).execute()
        self.known = total
        return total - count


def open_store(settings):
    """The store with the count that it knows; None: nothing is to be kept."""
    match settings.backend:
        case "file":
            return FileStore(settings.counter_file)
        case "redis":
            return RedisStore(settings.redis_url)
    return None
