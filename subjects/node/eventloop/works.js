// Promises that wake one another, events through lists, and messages to JSON and back.

import { EventEmitter } from "node:events";

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

/** An async function awaits an event; for each round another, put into the queue of microtasks, sets it. */
export async function coroutine({ count }) {
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

/** A list for each priority, in the order in which was pushed. */
class Queue {
  constructor(priorities) {
    this.lists = Array.from({ length: priorities }, () => ({ events: [], next: 0 }));
  }

  push(level, event) {
    this.lists[level].events.push(event);
  }

  pop() {
    for (const list of this.lists) {
      if (list.next < list.events.length) {
        const event = list.events[list.next];
        list.events[list.next] = undefined; // so that it can be freed
        list.next += 1;
        return event;
      }
    }
    return undefined;
  }
}

/** All events are pushed before the first is emitted; nobody listens. */
export async function event({ count, priorities }) {
  const queue = new Queue(priorities);
  const emitter = new EventEmitter();
  const sum = new Sum();
  let dispatched = 0;
  for (let id = 1; id <= count; id += 1) {
    const level = (id - 1) % priorities;
    queue.push(level, { id, origin: 0, priority: 1000 + level, name: "useless" });
  }
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (!emitter.emit(next.name, next)) {
      dispatched += 1;
      sum.add(next.id * (dispatched % 7 + 1));
    }
  }
  return { checksum: sum.value, bytes: 0 };
}

/** A message to JSON and back. */
export async function serializer({ count }) {
  const sum = new Sum();
  let bytes = 0;
  for (let i = 0; i < count; i += 1) {
    const sent = { id: 20 + i % 64, val: "five hundred" };
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
