"""Services by the registry: many of them, each with a logger of its own, and two of which one requires the other."""

from registry import Registry


class Counts:
    def __init__(self):
        self.starts = 0
        self.stops = 0


class Counted:
    """Counts, and does nothing else."""

    def __init__(self, counts):
        self.counts = counts

    def inject(self, name, provider, service):
        pass

    async def start(self):
        self.counts.starts += 1

    async def stop(self):
        self.counts.stops += 1


class NullLogger(Counted):
    """Counts lines: the works measure no output."""

    def __init__(self, counts, level):
        super().__init__(counts)
        self.level = level
        self.lines = 0

    def log(self, line):
        self.lines += 1


class LoggerFactory(Counted):
    """Makes a logger for each service that lacks one, offered to that service only."""

    def __init__(self, counts, registry):
        super().__init__(counts)
        self.registry = registry

    async def start(self):
        await super().start()
        self.registry.make_on_request("logger", self.make)

    def make(self, requester, properties):
        level = properties.get("level", "warn")
        return {
            "properties": {"owner": requester, "level": level},
            "provides": "logger",
            "only": requester,
            "service": NullLogger(self.counts, level),
        }


def insert_factory(registry, counts):
    registry.insert(requires=("framework logger",), service=LoggerFactory(counts, registry))
    registry.insert(provides="framework logger", service=Counted(counts))


class One(Counted):
    """One of many: the last one to start ends the application."""

    def __init__(self, counts, registry, count, properties, logger=None):
        super().__init__(counts)
        self.registry = registry
        self.count = count
        self.properties = properties
        self.logger = logger

    def inject(self, name, provider, service):
        self.logger = service

    async def start(self):
        if self.logger is None or self.properties["iteration"] >= self.count:
            raise RuntimeError("a service was started without what it requires")
        self.counts.starts += 1
        if self.counts.starts == self.count:
            self.registry.quit()


async def start(options):
    """Many services, each of which requires a logger of its own."""
    registry = Registry()
    of_many, of_loggers = Counts(), Counts()
    insert_factory(registry, of_loggers)

    def make(properties, required=(None,)):
        return One(of_many, registry, options.count, properties, *required)

    for iteration in range(options.count):
        properties = {"iteration": iteration, "level": "error"}
        if options.injection == "constructor":
            registry.insert(properties=properties, requires=("logger",), make=make)
        else:
            registry.insert(properties=properties, requires=("logger",), service=make(properties))
    await registry.wait()
    return of_many.starts + of_loggers.starts + 3 * (of_many.stops + of_loggers.stops), 0


class B(Counted):
    logger = None

    def inject(self, name, provider, service):
        self.logger = service

    async def start(self):
        self.logger.log("start")
        await super().start()

    async def stop(self):
        self.logger.log("stop")
        await super().stop()


class Manager:
    """Offers the registry to those that require the manager."""

    def __init__(self, registry):
        self.registry = registry

    def inject(self, name, provider, service):
        pass

    async def start(self):
        pass

    async def stop(self):
        pass


class A(Counted):
    """Requires B, and has the manager stop it and start it again."""

    def __init__(self, counts, cycles):
        super().__init__(counts)
        self.cycles = cycles
        self.logger = None
        self.manager = None
        self.needed = None

    def inject(self, name, provider, service):
        if name == "needed":
            self.needed = provider
        elif name == "manager":
            self.manager = service.registry
        else:
            self.logger = service

    async def start(self):
        self.logger.log("start")
        self.counts.starts += 1
        if self.counts.starts <= self.cycles:
            self.manager.stop(self.needed)
        else:
            self.manager.quit()

    async def stop(self):
        self.logger.log("stop")
        self.counts.stops += 1
        if self.counts.stops <= self.cycles:
            self.manager.start(self.needed)


async def start_stop(options):
    """B is stopped, so that A stops first, and started, so that A starts again. Both require a logger."""
    registry = Registry()
    of_a, of_b = Counts(), Counts()
    insert_factory(registry, Counts())
    a, b = A(of_a, options.count), B(of_b)
    registry.insert(provides="manager", service=Manager(registry))
    registry.insert(requires=("logger",), provides="needed", service=b)
    registry.insert(requires=("logger", "needed", "manager"), service=a)
    await registry.wait()
    steps = of_a.starts + 3 * of_b.starts + 5 * of_a.stops + 7 * of_b.stops
    return steps + 11 * a.logger.lines + 13 * b.logger.lines, 0
