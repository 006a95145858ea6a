"""Kills itself with SIGKILL when it has answered DIES_AFTER pings."""

import os
import signal

import pingserver

left = int(os.environ.get("DIES_AFTER", "2000"))


class Connection(pingserver.Connection):
    def sequence(self, asked):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return asked


pingserver.main(Connection)
