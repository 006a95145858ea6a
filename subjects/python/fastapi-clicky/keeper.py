"""Brings the count to its store, in a process of its own, so that no request waits for it and each worker is like the
others. It ends, after it has stored the last value, when the master and all workers are gone."""

import logging
import os
import select
import signal
import time

# For how long the last value is tried. With the workers' own shutdown it stays below the 5 s after which a supervisor
# may kill.
LAST_CHANCE_S = 2.0
RETRY_S = 0.1

log = logging.getLogger("clicky")


class Keeper:
    def __init__(self, store, count, every_s):
        """Starts the process. To be called before the sockets are opened, so that it does not have them."""
        self.ended, alive = os.pipe()
        self.alive = alive
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                os.close(alive)
                status = self.keep(store, count, every_s)
            finally:
                os._exit(status)
        # The workers inherit the other end: it is closed when the last of them is.
        os.close(self.ended)

    def keep(self, store, count, every_s):
        # They mean the master, which tells by ending.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while not select.select([self.ended], [], [], every_s)[0]:
            try:
                count.add(store.save(count.get()))
            except Exception as error:
                # The next turn saves all that this one did not.
                log.error("the count was not saved: %r", error)
        return self.save_last(store, count.get())

    def save_last(self, store, last):
        deadline = time.monotonic() + LAST_CHANCE_S
        while True:
            try:
                store.save(last)
                return 0
            except Exception as error:
                if time.monotonic() > deadline:
                    log.error("the last count, %s, was not saved: %r", last, error)
                    return 1
                time.sleep(RETRY_S)

    def finish(self):
        """Waits until the last value is stored. False: it could not be."""
        os.close(self.alive)
        try:
            _, status = os.waitpid(self.process, 0)
        except ChildProcessError:
            log.error("the keeper had died before the end")
            return False
        return status == 0
