"""The one number, in memory that all workers share: whoever imports this before the workers are forked is part of it."""

import fcntl
import mmap
import tempfile


class Count:
    """A counter that any process may add to."""

    def __init__(self):
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._word = memoryview(self._memory).cast("Q")
        # A file's lock, because the kernel takes it from a worker that dies with it.
        self._lock = tempfile.TemporaryFile()

    def get(self):
        # An aligned word is read whole.
        return self._word[0]

    def add(self, clicks):
        """Adds and returns the new total. What others have added to the same counter may be less than 0."""
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            total = self._word[0] + clicks
            self._word[0] = total
            return total
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)


count = Count()
