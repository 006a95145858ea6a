"""Coroutines that wake one another, events through deques, and messages to JSON and back."""

import asyncio
import json
from collections import deque


async def coroutine(options):
    """A coroutine awaits an event; for each round a task, put into the loop's queue, sets it."""
    ready = asyncio.Event()
    total = 0

    async def set_ready(number):
        nonlocal total
        total += number
        ready.set()

    loop = asyncio.get_running_loop()
    for number in range(options.count):
        setting = loop.create_task(set_ready(number))
        await ready.wait()
        ready.clear()
        total += 1
        del setting  # kept until here: the loop itself refers to tasks weakly
    return total % 2**64, 0


class Event:
    __slots__ = ("id", "origin", "priority")
    kind = "useless"

    def __init__(self, number, origin, priority):
        self.id = number
        self.origin = origin
        self.priority = priority


def pop(levels):
    """The first of the events of the lowest level that has some, or None."""
    for level in levels:
        if level:
            return level.popleft()
    return None


async def event(options):
    """All events are pushed before the first is dispatched; there is no handler for them."""
    levels = [deque() for _ in range(options.priorities)]
    handlers = {}
    for number in range(1, options.count + 1):
        level = (number - 1) % options.priorities
        levels[level].append(Event(number, 0, 1000 + level))
    total = dispatched = 0
    while (next_event := pop(levels)) is not None:
        handler = handlers.get(next_event.kind)
        if handler is not None:
            handler(next_event)
        else:
            dispatched += 1
            total += next_event.id * (dispatched % 7 + 1)
    return total % 2**64, 0


async def serializer(options):
    """A message to JSON and back."""
    total = size = 0
    for i in range(options.count):
        sent = {"id": 20 + i % 64, "val": "five hundred"}
        text = json.dumps(sent, separators=(",", ":")).encode()
        back = json.loads(text)
        if back["id"] != sent["id"] or back["val"] != sent["val"]:
            raise ValueError(f"a message did not come back as it was: {text}")
        size += len(text)
        total += back["id"] + len(back["val"])
    return total % 2**64, size
