"""Closes after each response, as if HTTP/1.1 did so by default."""

import pingserver


class Connection(pingserver.Connection):
    def respond(self, *request):
        super().respond(*request)
        self.transport.close()


pingserver.main(Connection)
