'use strict'

// A client in a closed loop on undici: on each connection of a Pool, one request at a time; its body is read to the end.
// With more than one thread, each is a worker with a Pool of its own.

const { parseArgs } = require('node:util')
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')
const { Pool } = require('undici')
const { Histogram } = require('./histogram.js')

// How long requests that are under way at the end may take to end.
const DRAIN_MS = 5000

const now = () => Math.round(performance.now() * 1e6)

class Loop {
  constructor ({ url, connections, seconds }) {
    const { origin, pathname, search } = new URL(url)
    this.pool = new Pool(origin, { connections, pipelining: 1 })
    this.options = { method: 'GET', path: pathname + search }
    this.connections = connections
    this.drainedMs = seconds * 1000 + DRAIN_MS
    this.deadline = now() + seconds * 1e9
    this.tally = { answered: 0, inFlight: 0, bytes: 0, connectFailed: 0, failed: {}, histogram: new Histogram() }
  }

  // One request and its whole answer; resolves to the length of the body.
  async ask () {
    const { statusCode, body } = await this.pool.request(this.options)
    let bytes = 0
    for await (const chunk of body) bytes += chunk.length
    if (statusCode < 200 || statusCode > 299) throw Object.assign(new Error(), { code: 'status' })
    return bytes
  }

  async connection () {
    const { tally, deadline } = this
    for (let started = now(); started < deadline;) {
      let bytes, error
      try {
        bytes = await this.ask()
      } catch (reason) {
        error = reason
      }
      const ended = now()
      // A connection that could not be made is no request.
      if (error?.syscall === 'connect' || error?.code === 'UND_ERR_CONNECT_TIMEOUT') {
        tally.connectFailed++
      } else if (ended > deadline) {
        tally.inFlight++
      } else if (error) {
        const kind = error.code ?? error.name
        tally.failed[kind] = (tally.failed[kind] ?? 0) + 1
      } else {
        tally.answered++
        tally.bytes += bytes
        tally.histogram.record(ended - started)
      }
      started = ended
    }
  }

  async run () {
    const last = setTimeout(() => this.pool.destroy(), this.drainedMs)
    await Promise.all(Array.from({ length: this.connections }, () => this.connection()))
    clearTimeout(last)
    if (!this.pool.destroyed) await this.pool.destroy()
    return this.tally
  }
}

function words () {
  const text = { type: 'string' }
  const { values } = parseArgs({ options: { url: text, connections: text, threads: text, seconds: text } })
  const numbers = ['connections', 'threads', 'seconds'].map((name) => Number(values[name]))
  if (!URL.canParse(values.url) || numbers.some((number) => !Number.isInteger(number) || number < 1)) {
    throw new Error('--url, --connections, --threads and --seconds are needed, the numbers from 1 on')
  }
  const [connections, threads, seconds] = numbers
  return { url: values.url, connections, threads, seconds }
}

function inThread (task) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: task })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

function line ({ connections, threads, seconds }, tallies) {
  const sum = (name) => tallies.reduce((total, tally) => total + tally[name], 0)
  const failed = {}
  const histogram = new Histogram()
  for (const tally of tallies) {
    histogram.add(tally.histogram)
    for (const [kind, count] of Object.entries(tally.failed)) failed[kind] = (failed[kind] ?? 0) + count
  }
  return {
    measure: 'requests',
    threads,
    count: sum('answered'),
    elapsed_ns: seconds * 1e9,
    bytes: sum('bytes'),
    client: {
      connections,
      failed: Object.values(failed).reduce((total, count) => total + count, 0),
      failed_by_kind: failed,
      in_flight: sum('inFlight'),
      latency: histogram.latency()
    },
    tallies: { connect_failed: sum('connectFailed') }
  }
}

async function main () {
  let asked
  try {
    asked = words()
  } catch (error) {
    console.error(error.message)
    process.exit(2)
  }
  const { connections, threads } = asked
  const share = (index) => Math.floor(connections / threads) + (index < connections % threads ? 1 : 0)
  const tasks = Array.from({ length: threads }, (_, index) => ({ ...asked, connections: share(index) }))
  const tallies = threads === 1 ? [await new Loop(tasks[0]).run()] : await Promise.all(tasks.map(inThread))
  console.log(JSON.stringify(line(asked, tallies)))
}

if (isMainThread) {
  main()
} else {
  new Loop(workerData).run().then((tally) => parentPort.postMessage(tally))
}
