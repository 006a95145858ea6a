"""Is slow at its first ping, and slower at one that comes after 200 ms without any."""

import time

import pingserver

FIRST_S = 0.04
REST_S = 0.2
AFTER_REST_S = 0.08


class Connection(pingserver.Connection):
    last = None

    def ping(self, body):
        last = Connection.last
        if last is None:
            time.sleep(FIRST_S)
        elif time.monotonic() - last > REST_S:
            time.sleep(AFTER_REST_S)
        Connection.last = time.monotonic()
        return super().ping(body)


pingserver.main(Connection)
