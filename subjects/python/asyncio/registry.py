"""A registry of services, as one writes it for an application on asyncio.

It finds by name who provides what a service requires, starts the service in a task of its own when all is there, and
stops those that use it before it. A service has coroutines `start` and `stop`, and `inject(name, provider, service)` if
it is given what it requires one by one.
"""

import asyncio
from enum import Enum, auto


class State(Enum):
    INSTALLED = auto()
    STARTING = auto()
    ACTIVE = auto()
    LEAVING = auto()
    STOPPING = auto()


class Entry:
    __slots__ = (
        "again", "dependents", "id", "make", "only", "properties", "provides", "remove", "requires", "service", "state",
        "uses",
    )  # fmt: skip

    def __init__(self, number, *, properties=None, requires=(), provides=None, only=None, service=None, make=None):
        self.id = number
        self.properties = properties or {}
        self.requires = requires
        self.provides = provides
        self.only = only
        self.service = service
        self.make = make
        self.state = State.INSTALLED
        self.remove = False
        self.again = False
        self.uses = {}
        self.dependents = {}


class Registry:
    def __init__(self):
        self._next = 1
        self._services = {}
        self._waiting = {}  # name to those that lack it, by number
        self._online = {}  # name to who provides it to all
        self._factories = {}
        self._quitting = False
        self._tasks = set()
        self._done = asyncio.get_running_loop().create_future()

    def insert(self, **spec):
        """Adds a service, which starts when it can: `service`, or `make(properties, required)` that makes it then."""
        entry = Entry(self._next, **spec)
        self._next += 1
        self._services[entry.id] = entry
        for name in entry.requires:
            self._lack(entry, name)
            if name in self._online:
                self._offer(self._online[name], entry)
            elif name in self._factories:
                self.insert(**self._factories[name](entry.id, entry.properties))
        self._start_if_ready(entry)

    def make_on_request(self, name, factory):
        """`factory(requester, properties)` says what to insert for each service that lacks the named thing."""
        self._factories[name] = factory
        for entry in list(self._waiting.get(name, {}).values()):
            self.insert(**factory(entry.id, entry.properties))

    def start(self, number):
        if (entry := self._services.get(number)) is not None:
            entry.again = entry.state in (State.LEAVING, State.STOPPING)
            self._start_if_ready(entry)

    def stop(self, number):
        if (entry := self._services.get(number)) is not None:
            self._stop(entry, remove=False)

    def quit(self):
        """Stops and removes all services."""
        self._quitting = True
        for entry in list(self._services.values()):
            self._stop(entry, remove=True)

    async def wait(self):
        """Returns when all services are gone after `quit`; raises what one of them raised."""
        await self._done

    def _spawn(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)  # the loop itself refers to tasks weakly
        task.add_done_callback(self._ended)

    def _ended(self, task):
        self._tasks.discard(task)
        if task.exception() is not None and not self._done.done():
            self._done.set_exception(task.exception())

    def _lack(self, entry, name):
        self._waiting.setdefault(name, {})[entry.id] = entry

    def _offer(self, provider, entry):
        name = provider.provides
        if entry is None or self._waiting.get(name, {}).pop(entry.id, None) is None:
            return
        entry.uses[name] = provider
        provider.dependents[entry.id] = entry
        if entry.service is not None:
            entry.service.inject(name, provider.id, provider.service)
        self._start_if_ready(entry)

    def _start_if_ready(self, entry):
        if entry.state is State.INSTALLED and len(entry.uses) == len(entry.requires):
            if entry.make is not None:
                entry.service = entry.make(entry.properties, [entry.uses[name].service for name in entry.requires])
            entry.state = State.STARTING
            self._spawn(self._start(entry))

    async def _start(self, entry):
        await entry.service.start()
        entry.state = State.ACTIVE
        if entry.provides is not None and entry.only is not None:
            self._offer(entry, self._services.get(entry.only))
        elif entry.provides is not None:
            self._online[entry.provides] = entry
            for waiting in list(self._waiting.get(entry.provides, {}).values()):
                self._offer(entry, waiting)
        if self._quitting:
            self._stop(entry, remove=True)
        elif any(provider.state is State.LEAVING for provider in entry.uses.values()):
            self._stop(entry, remove=False)

    def _stop(self, entry, *, remove):
        entry.remove |= remove
        if entry.state is State.ACTIVE:
            entry.state = State.LEAVING
            if self._online.get(entry.provides) is entry:
                del self._online[entry.provides]
            for dependent in list(entry.dependents.values()):
                if dependent.state is State.INSTALLED:
                    self._release(dependent, entry)
                else:
                    self._stop(dependent, remove=False)
            self._stop_if_unused(entry)
        elif entry.state is State.INSTALLED and entry.remove:
            self._delete(entry)

    def _stop_if_unused(self, entry):
        if entry.state is State.LEAVING and not entry.dependents:
            entry.state = State.STOPPING
            self._spawn(self._finish(entry))

    async def _finish(self, entry):
        await entry.service.stop()
        entry.state = State.INSTALLED
        for provider in list(entry.uses.values()):
            # One that stays is kept, so that this service starts again as soon as the others are back.
            if entry.remove or provider.state is State.LEAVING:
                self._release(entry, provider)
        if entry.remove:
            self._delete(entry)
            return
        if entry.make is not None:
            entry.service = None
        if entry.again:
            entry.again = False
            self._start_if_ready(entry)

    def _release(self, entry, provider):
        del entry.uses[provider.provides]
        self._lack(entry, provider.provides)
        del provider.dependents[entry.id]
        self._stop_if_unused(provider)

    def _delete(self, entry):
        for name in entry.requires:
            self._waiting.get(name, {}).pop(entry.id, None)
        for provider in entry.uses.values():
            del provider.dependents[entry.id]
        del self._services[entry.id]
        if self._quitting and not self._services:
            self._done.set_result(None)
