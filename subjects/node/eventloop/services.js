// Services by the registry: many of them, each with a logger of its own, and two of which one requires the other.

import { Registry } from "./registry.js";

class Counts {
  starts = 0;
  stops = 0;
}

/** Counts, and does nothing else. */
class Counted {
  constructor(counts) {
    this.counts = counts;
  }
  async start() {
    this.counts.starts += 1;
  }
  async stop() {
    this.counts.stops += 1;
  }
  inject() {}
}

/** Counts lines: the works measure no output. */
class NullLogger extends Counted {
  constructor(counts, level) {
    super(counts);
    this.level = level;
    this.lines = 0;
  }
  log() {
    this.lines += 1;
  }
}

/** Makes a logger for each service that lacks one, offered to that service only. */
class LoggerFactory extends Counted {
  constructor(counts, registry) {
    super(counts);
    this.registry = registry;
  }
  async start() {
    await super.start();
    this.registry.makeOnRequest("logger", (requester, { level = "warn" }) => ({
      properties: { owner: requester, level },
      provides: "logger",
      only: requester,
      service: new NullLogger(this.counts, level),
    }));
  }
}

function insertFactory(registry, counts) {
  registry.insert({ requires: ["framework logger"], service: new LoggerFactory(counts, registry) });
  registry.insert({ provides: "framework logger", service: new Counted(counts) });
}

/** One of many: the last one to start ends the application. */
class One extends Counted {
  constructor(counts, registry, count, properties, logger = null) {
    super(counts);
    Object.assign(this, { registry, count, properties, logger });
  }
  inject(_name, _provider, logger) {
    this.logger = logger;
  }
  async start() {
    if (this.logger === null || !(this.properties.iteration < this.count)) {
      throw new Error("a service was started without what it requires");
    }
    this.counts.starts += 1;
    if (this.counts.starts === this.count) {
      this.registry.quit();
    }
  }
}

/** Many services, each of which requires a logger of its own. */
export async function start({ count, constructorInjection }) {
  const registry = new Registry();
  const ofMany = new Counts();
  const ofLoggers = new Counts();
  insertFactory(registry, ofLoggers);
  for (let iteration = 0; iteration < count; iteration += 1) {
    const properties = { iteration, level: "error" };
    registry.insert(constructorInjection
      ? { properties, requires: ["logger"], make: (own, [logger]) => new One(ofMany, registry, count, own, logger) }
      : { properties, requires: ["logger"], service: new One(ofMany, registry, count, properties) });
  }
  await registry.done;
  const checksum = ofMany.starts + ofLoggers.starts + 3 * (ofMany.stops + ofLoggers.stops);
  return { checksum: BigInt(checksum), bytes: 0 };
}

class B extends Counted {
  logger = null;
  inject(_name, _provider, logger) {
    this.logger = logger;
  }
  async start() {
    this.logger.log("start");
    await super.start();
  }
  async stop() {
    this.logger.log("stop");
    await super.stop();
  }
}

/** Offers the registry to those that require the manager. */
class Manager {
  constructor(registry) {
    this.registry = registry;
  }
  async start() {}
  async stop() {}
  inject() {}
}

/** Requires B, and has the manager stop it and start it again. */
class A extends Counted {
  logger = null;
  manager = null;
  needed = null;
  constructor(counts, cycles) {
    super(counts);
    this.cycles = cycles;
  }
  inject(name, provider, service) {
    if (name === "needed") {
      this.needed = provider;
    } else if (name === "manager") {
      this.manager = service.registry;
    } else {
      this.logger = service;
    }
  }
  async start() {
    this.logger.log("start");
    this.counts.starts += 1;
    if (this.counts.starts <= this.cycles) {
      this.manager.stop(this.needed);
    } else {
      this.manager.quit();
    }
  }
  async stop() {
    this.logger.log("stop");
    this.counts.stops += 1;
    if (this.counts.stops <= this.cycles) {
      this.manager.start(this.needed);
    }
  }
}

/** B is stopped, so that A stops first, and started, so that A starts again. Both require a logger. */
export async function startStop({ count }) {
  const registry = new Registry();
  const ofA = new Counts();
  const ofB = new Counts();
  insertFactory(registry, new Counts());
  const a = new A(ofA, count);
  const b = new B(ofB);
  registry.insert({ provides: "manager", service: new Manager(registry) });
  registry.insert({ requires: ["logger"], provides: "needed", service: b });
  registry.insert({ requires: ["logger", "needed", "manager"], service: a });
  await registry.done;
  const steps = ofA.starts + 3 * ofB.starts + 5 * ofA.stops + 7 * ofB.stops;
  return { checksum: BigInt(steps + 11 * a.logger.lines + 13 * b.logger.lines), bytes: 0 };
}
