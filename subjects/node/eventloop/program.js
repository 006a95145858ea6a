// One work, on the main thread or on many workers, and what came of it as a line of JSON.

import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { start, startStop } from "./services.js";
import { coroutine, event, serializer } from "./works.js";

const COUNT_MAX = 2 ** 32 - 1;
const THREADS_MAX = 1024;

const WORKS = {
  coroutine: ["coroutines", coroutine],
  event: ["events", event],
  start: ["services", start],
  "start-stop": ["cycles", startStop],
  serializer: ["messages", serializer],
};

class Usage extends Error {}

function number(name, text, max) {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text ?? "") || value < 1 || value > max) {
    throw new Usage(`--${name} is a whole number from 1 to ${max}, not ${text}`);
  }
  return value;
}

function oneOf(name, text, choices) {
  if (!choices.includes(text)) {
    throw new Usage(`--${name} is ${choices.join(" or ")}, not ${text}`);
  }
  return text;
}

function parse(args) {
  const string = (fallback) => ({ type: "string", default: fallback });
  let values;
  try {
    const options = {
      work: string(), count: string(), threads: string("1"), injection: string("explicit"), priorities: string("1"),
      handler: string("coroutine"), payload: string("0"), through: string("events"),
    };
    ({ values } = parseArgs({ args, options }));
  } catch (error) {
    throw new Usage(error.message);
  }
  return {
    work: oneOf("work", values.work, Object.keys(WORKS)),
    count: number("count", values.count, COUNT_MAX),
    threads: number("threads", values.threads, THREADS_MAX),
    constructorInjection: oneOf("injection", values.injection, ["explicit", "constructor"]) === "constructor",
    priorities: Number(oneOf("priorities", values.priorities, ["1", "8"])),
    handler: oneOf("handler", values.handler, ["coroutine", "plain", "none"]),
    payload: Number(oneOf("payload", values.payload, ["0", "32"])),
    byTasks: oneOf("through", values.through, ["events", "tasks"]) === "tasks",
  };
}

/** The outcome of the work in a worker, when the worker has ended. */
function inWorker(options) {
  return new Promise((resolve, reject) => {
    let outcome;
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: options });
    worker.on("message", (message) => { outcome = message; });
    worker.on("error", reject);
    worker.on("exit", (code) => (code === 0 ? resolve(outcome) : reject(new Error(`a worker ended with ${code}`))));
  });
}

async function main() {
  const options = parse(process.argv.slice(2));
  const [measure, run] = WORKS[options.work];
  const begun = process.hrtime.bigint();
  const outcomes = options.threads === 1
    ? [await run(options)]
    : await Promise.all(Array.from({ length: options.threads }, () => inWorker(options)));
  const elapsed = process.hrtime.bigint() - begun;
  console.log(JSON.stringify({
    measure,
    threads: options.threads,
    count: options.count * options.threads,
    elapsed_ns: Number(elapsed),
    bytes: outcomes.reduce((sum, outcome) => sum + outcome.bytes, 0),
    checksum: BigInt.asUintN(64, outcomes.reduce((sum, outcome) => sum + outcome.checksum, 0n)).toString(),
  }));
}

if (isMainThread) {
  main().catch((error) => {
    console.error(`eventloop: ${error instanceof Usage ? error.message : error.stack}`);
    process.exitCode = error instanceof Usage ? 2 : 1;
  });
} else {
  parentPort.postMessage(await WORKS[workerData.work][1](workerData));
}
