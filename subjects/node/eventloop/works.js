// Promises that wake one another, events through lists, and messages to JSON and back.

/** A sum of whole numbers that may become larger than a number can be exactly. */
export class Sum {
  #part = 0;
  #whole = 0n;

  add(value) {
    this.#part += value;
    if (this.#part >= 2 ** 52) {
      this.#whole += BigInt(this.#part);
      this.#part = 0;
    }
  }

  get value() {
    return this.#whole + BigInt(this.#part);
  }
}

class AutoResetEvent {
  #resolve = null;
  #set = false;

  wait() {
    if (this.#set) {
      this.#set = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => { this.#resolve = resolve; });
  }

  set() {
    const resolve = this.#resolve;
    this.#resolve = null;
    if (resolve === null) {
      this.#set = true;
    } else {
      resolve();
    }
  }
}

/** A list for each priority, in the order in which was pushed. */
class Queue {
  #closed = false;
  #pushed = new AutoResetEvent();
  #waits = false;

  constructor(priorities) {
    this.lists = Array.from({ length: priorities }, () => ({ events: [], next: 0 }));
  }

  push(level, event) {
    this.lists[level].events.push(event);
    if (this.#waits) {
      this.#pushed.set();
    }
  }

  /** Lets the dispatcher end when all that was pushed has been handled. */
  close() {
    this.#closed = true;
    if (this.#waits) {
      this.#pushed.set();
    }
  }

  pop() {
    for (const list of this.lists) {
      if (list.next < list.events.length) {
        const event = list.events[list.next];
        list.events[list.next] = undefined; // so that it can be freed
        list.next += 1;
        if (list.next === list.events.length) {
          list.events.length = 0;
          list.next = 0;
        }
        return event;
      }
    }
    return undefined;
  }

  /**
   * Calls the handlers of all events until it is closed, and says how many came. What an async handler promises is
   * awaited before the next event: they keep their order.
   */
  async dispatch(handlers) {
    let dispatched = 0;
    for (;;) {
      const event = this.pop();
      if (event === undefined) {
        if (this.#closed) {
          return dispatched;
        }
        this.#waits = true;
        await this.#pushed.wait();
        this.#waits = false;
        continue;
      }
      dispatched += 1;
      const promised = handlers.get(event.name)?.(event);
      if (promised !== undefined) {
        await promised;
      }
    }
  }
}

/** An async function awaits an event; for each round one goes through the queue, whose async handler sets it. */
export async function coroutine({ count, byTasks }) {
  if (byTasks) {
    return coroutineByTasks(count);
  }
  const ready = new AutoResetEvent();
  const sum = new Sum();
  const queue = new Queue(1);
  const handlers = new Map([["resume", async ({ round }) => {
    sum.add(round);
    ready.set();
  }]]);
  const dispatching = queue.dispatch(handlers);
  for (let round = 0; round < count; round += 1) {
    queue.push(0, { id: round + 1, origin: 1, priority: 1000, name: "resume", round });
    await ready.wait();
    sum.add(1);
  }
  queue.close();
  await dispatching;
  return { checksum: sum.value, bytes: 0 };
}

/** The same by Node's own means: for each round an async function, put into the queue of microtasks, sets the event. */
async function coroutineByTasks(count) {
  const ready = new AutoResetEvent();
  const sum = new Sum();
  const set = async (round) => {
    sum.add(round);
    ready.set();
  };
  for (let round = 0; round < count; round += 1) {
    queueMicrotask(() => set(round));
    await ready.wait();
    sum.add(1);
  }
  return { checksum: sum.value, bytes: 0 };
}

/** All events are pushed before the first is dispatched; a handler sees each. */
export async function event({ count, priorities, handler, payload }) {
  const queue = new Queue(priorities);
  const sum = new Sum();
  let seen = 0;
  for (let id = 1; id <= count; id += 1) {
    const level = (id - 1) % priorities;
    const words = payload === 0 ? null : [id, id + 1, id + 2, id + 3];
    queue.push(level, { id, origin: 1, priority: 1000 + level, name: "useless", words });
  }
  queue.close();
  const note = ({ id, words }) => {
    seen += 1;
    sum.add(id * (seen % 7 + 1) + (words === null ? 0 : words[0] + words[1] + words[2] + words[3]));
  };
  const handlers = new Map();
  if (handler !== "none") {
    handlers.set("useless", handler === "plain" ? note : async (next) => note(next));
  }
  const dispatched = await queue.dispatch(handlers);
  return { checksum: handler === "none" ? BigInt(dispatched) : sum.value, bytes: 0 };
}

/** A message to JSON and back. */
export async function serializer({ count }) {
  const sum = new Sum();
  let bytes = 0;
  const sent = { id: 0, val: "five hundred" };
  for (let i = 0; i < count; i += 1) {
    sent.id = 20 + i % 64;
    const text = JSON.stringify(sent);
    const back = JSON.parse(text);
    if (back.id !== sent.id || back.val !== sent.val) {
      throw new Error(`a message did not come back as it was: ${text}`);
    }
    bytes += text.length; // it is ASCII
    sum.add(back.id + back.val.length);
  }
  return { checksum: sum.value, bytes };
}
