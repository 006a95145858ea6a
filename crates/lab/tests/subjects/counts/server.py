"""Counts its requests and the bytes of its bodies, and tells them at /counts.

DIES_AFTER: kills itself with SIGKILL at the request after so many. MISCOUNTS: says so many too many once it was asked
for a page. PAYLOAD_BYTES: length of /testpayload. SERVES_SHORT: bytes that it then lacks.
"""

import os
import signal

import pingserver

requests = 0
pages = 0
sent_bytes = 0
dies_after = int(os.environ.get("DIES_AFTER", "-1"))
miscounts = int(os.environ.get("MISCOUNTS", "0"))
payload_bytes = int(os.environ["PAYLOAD_BYTES"]) - int(os.environ.get("SERVES_SHORT", "0"))


class Connection(pingserver.Connection):
    def respond(self, method, path, version, fields, body):
        global requests, pages, sent_bytes
        requests += 1
        # What the lab itself asks says that it closes.
        if "connection" not in fields:
            pages += 1
        if pages == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self.answer(method, path, body)[2]
        super().respond(method, path, version, fields, body)
        sent_bytes += len(answer) if method != "HEAD" else 0

    def answer(self, method, path, body):
        if path == "/counts":
            wrong = miscounts if pages else 0
            return 200, "text/plain", f"requests {requests + wrong} bytes {sent_bytes}\n".encode()
        if path == "/testpayload" and payload_bytes > 0:
            return 200, "application/octet-stream", b"x" * payload_bytes
        return super().answer(method, path, body)


pingserver.main(Connection)
