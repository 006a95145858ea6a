// A registry of services, as one writes it for an application: it finds by name who provides what a service requires,
// starts the service when all is there, and stops those that use it before it. Start and stop are async functions.
//
// A service has `start()` and `stop()`, and `inject(name, provider, service)` if it is given what it requires one by one.
// What is inserted is { properties, requires, provides, only, service } or, instead of `service`,
// `make(properties, required)`, called when what it requires is there.

export class Registry {
  #next = 1;
  #services = new Map();
  #waiting = new Map(); // name to entries that lack it
  #online = new Map(); // name to the entry that provides it to all
  #factories = new Map();
  #quitting = false;
  #done;

  constructor() {
    this.done = new Promise((resolve) => { this.#done = resolve; });
  }

  insert({ properties = {}, requires = [], provides = null, only = null, service = null, make = null }) {
    const id = this.#next;
    this.#next += 1;
    const entry = {
      id, properties, requires, provides, only, service, make,
      state: "installed", remove: false, again: false, uses: new Map(), dependents: new Set(),
    };
    this.#services.set(id, entry);
    for (const name of requires) {
      this.#lack(entry, name);
      if (this.#online.has(name)) {
        this.#offer(this.#online.get(name), entry);
      } else if (this.#factories.has(name)) {
        this.insert(this.#factories.get(name)(id, properties));
      }
    }
    this.#startIfReady(entry);
    return id;
  }

  /** From now on `factory(requester, properties)` says what to insert for each service that lacks the named thing. */
  makeOnRequest(name, factory) {
    this.#factories.set(name, factory);
    for (const entry of this.#waiting.get(name) ?? []) {
      this.insert(factory(entry.id, entry.properties));
    }
  }

  start(id) {
    const entry = this.#services.get(id);
    if (entry !== undefined) {
      entry.again = entry.state === "leaving" || entry.state === "stopping";
      this.#startIfReady(entry);
    }
  }

  stop(id) {
    const entry = this.#services.get(id);
    if (entry !== undefined) {
      this.#stop(entry, false);
    }
  }

  /** Stops and removes all services; `done` then resolves. */
  quit() {
    this.#quitting = true;
    for (const entry of this.#services.values()) {
      this.#stop(entry, true);
    }
  }

  #lack(entry, name) {
    if (!this.#waiting.has(name)) {
      this.#waiting.set(name, new Set());
    }
    this.#waiting.get(name).add(entry);
  }

  #offer(provider, entry) {
    const name = provider.provides;
    if (entry === undefined || !this.#waiting.get(name)?.delete(entry)) {
      return;
    }
    entry.uses.set(name, provider);
    provider.dependents.add(entry);
    entry.service?.inject(name, provider.id, provider.service);
    this.#startIfReady(entry);
  }

  #startIfReady(entry) {
    if (entry.state === "installed" && entry.uses.size === entry.requires.length) {
      if (entry.make !== null) {
        entry.service = entry.make(entry.properties, entry.requires.map((name) => entry.uses.get(name).service));
      }
      entry.state = "starting";
      entry.service.start().then(() => this.#started(entry));
    }
  }

  #started(entry) {
    entry.state = "active";
    if (entry.provides !== null && entry.only !== null) {
      this.#offer(entry, this.#services.get(entry.only));
    } else if (entry.provides !== null) {
      this.#online.set(entry.provides, entry);
      for (const waiting of this.#waiting.get(entry.provides) ?? []) {
        this.#offer(entry, waiting);
      }
    }
    if (this.#quitting) {
      this.#stop(entry, true);
    } else if ([...entry.uses.values()].some((provider) => provider.state === "leaving")) {
      this.#stop(entry, false);
    }
  }

  #stop(entry, remove) {
    entry.remove ||= remove;
    if (entry.state === "active") {
      entry.state = "leaving";
      if (this.#online.get(entry.provides) === entry) {
        this.#online.delete(entry.provides);
      }
      for (const dependent of entry.dependents) {
        if (dependent.state === "installed") {
          this.#release(dependent, entry);
        } else {
          this.#stop(dependent, false);
        }
      }
      this.#stopIfUnused(entry);
    } else if (entry.state === "installed" && entry.remove) {
      this.#delete(entry);
    }
  }

  #stopIfUnused(entry) {
    if (entry.state === "leaving" && entry.dependents.size === 0) {
      entry.state = "stopping";
      entry.service.stop().then(() => this.#stopped(entry));
    }
  }

  #stopped(entry) {
    entry.state = "installed";
    for (const provider of entry.uses.values()) {
      // One that stays is kept, so that this service starts again as soon as the others are back.
      if (entry.remove || provider.state === "leaving") {
        this.#release(entry, provider);
      }
    }
    if (entry.remove) {
      this.#delete(entry);
      return;
    }
    if (entry.make !== null) {
      entry.service = null;
    }
    if (entry.again) {
      entry.again = false;
      this.#startIfReady(entry);
    }
  }

  #release(entry, provider) {
    entry.uses.delete(provider.provides);
    this.#lack(entry, provider.provides);
    provider.dependents.delete(entry);
    this.#stopIfUnused(provider);
  }

  #delete(entry) {
    for (const name of entry.requires) {
      this.#waiting.get(name)?.delete(entry);
    }
    for (const provider of entry.uses.values()) {
      provider.dependents.delete(entry);
    }
    this.#services.delete(entry.id);
    if (this.#quitting && this.#services.size === 0) {
      this.#done();
    }
  }
}
