"""Kills itself with SIGKILL when it has answered DIES_AFTER pings, or when it goes on for the GOES_ON-th time after a stop."""

import os
import signal

import pingserver

goes_on = int(os.environ.get("GOES_ON", "0"))
left = int(os.environ.get("DIES_AFTER", "2000"))


def went_on(*_):
    global goes_on
    goes_on -= 1
    if goes_on == 0:
        os.kill(os.getpid(), signal.SIGKILL)


if goes_on:
    left = -1  # However many are asked.
    signal.signal(signal.SIGCONT, went_on)


class Connection(pingserver.Connection):
    def sequence(self, asked):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return asked


pingserver.main(Connection)
