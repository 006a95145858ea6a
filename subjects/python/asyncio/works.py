"""Coroutines that wake one another, events through deques, and messages to JSON and back."""

import asyncio
import json
from collections import deque


class Event:
    __slots__ = ("id", "load", "origin", "priority")
    kind = "useless"

    def __init__(self, number, origin, priority, load):
        self.id = number
        self.origin = origin
        self.priority = priority
        self.load = load


class Resume(Event):
    __slots__ = ()
    kind = "resume"


class Queue:
    """A deque for each priority, in the order in which was pushed, and its dispatcher."""

    def __init__(self, priorities):
        self._levels = [deque() for _ in range(priorities)]
        self._pushed = asyncio.Event()
        self._closed = False

    def push(self, level, event):
        self._levels[level].append(event)
        self._pushed.set()

    def close(self):
        """Lets the dispatcher end when all that was pushed has been handled."""
        self._closed = True
        self._pushed.set()

    def _pop(self):
        for level in self._levels:
            if level:
                return level.popleft()
        return None

    async def dispatch(self, handlers):
        """Calls the handlers of all events until it is closed; how many came. A coroutine is awaited before the next
        event: they keep their order."""
        dispatched = 0
        while True:
            event = self._pop()
            if event is None:
                if self._closed:
                    return dispatched
                self._pushed.clear()
                await self._pushed.wait()
                continue
            dispatched += 1
            handler = handlers.get(event.kind)
            if handler is not None:
                awaitable = handler(event)
                if awaitable is not None:
                    await awaitable


async def coroutine(options):
    """A coroutine awaits an event; for each round one goes through the queue, whose handler sets it."""
    if options.through == "tasks":
        return await coroutine_by_tasks(options.count)
    ready = asyncio.Event()
    total = 0

    async def resume(event):
        nonlocal total
        total += event.load
        ready.set()

    queue = Queue(1)
    dispatching = asyncio.get_running_loop().create_task(queue.dispatch({"resume": resume}))
    for number in range(options.count):
        queue.push(0, Resume(number + 1, 1, 1000, number))
        await ready.wait()
        ready.clear()
        total += 1
    queue.close()
    await dispatching
    return total % 2**64, 0


async def coroutine_by_tasks(count):
    """The same by asyncio's own means: for each round a task, put into the loop's queue, sets the event."""
    ready = asyncio.Event()
    total = 0

    async def set_ready(number):
        nonlocal total
        total += number
        ready.set()

    loop = asyncio.get_running_loop()
    for number in range(count):
        setting = loop.create_task(set_ready(number))
        await ready.wait()
        ready.clear()
        total += 1
        del setting  # kept until here: the loop itself refers to tasks weakly
    return total % 2**64, 0


async def event(options):
    """All events are pushed before the first is dispatched; a handler sees each."""
    queue = Queue(options.priorities)
    for number in range(1, options.count + 1):
        level = (number - 1) % options.priorities
        load = (number, number + 1, number + 2, number + 3) if options.payload else ()
        queue.push(level, Event(number, 1, 1000 + level, load))
    queue.close()
    total = seen = 0

    def note(event):
        nonlocal total, seen
        seen += 1
        total += event.id * (seen % 7 + 1) + sum(event.load)

    async def note_later(event):
        note(event)

    handlers = {"none": {}, "plain": {"useless": note}, "coroutine": {"useless": note_later}}
    dispatched = await queue.dispatch(handlers[options.handler])
    return (dispatched if options.handler == "none" else total) % 2**64, 0


async def serializer(options):
    """A message to JSON and back."""
    total = size = 0
    sent = {"id": 0, "val": "five hundred"}
    for i in range(options.count):
        sent["id"] = 20 + i % 64
        text = json.dumps(sent, separators=(",", ":")).encode()
        back = json.loads(text)
        if back["id"] != sent["id"] or back["val"] != sent["val"]:
            raise ValueError(f"a message did not come back as it was: {text}")
        size += len(text)
        total += back["id"] + len(back["val"])
    return total % 2**64, size
