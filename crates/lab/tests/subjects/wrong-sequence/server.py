"""Answers with the sequence + 1."""

import pingserver


class Connection(pingserver.Connection):
    def sequence(self, asked):
        return asked + 1


pingserver.main(Connection)
