"""Prints three lines, as a server does that waits for something, and never listens."""

import signal

print("never-ready: reading the configuration", flush=True)
print("never-ready: connecting to the database", flush=True)
print("never-ready: the database does not answer, waiting", flush=True)
signal.pause()
