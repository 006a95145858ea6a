'use strict'

// Buckets for each power of two: what is told of a value is at most 1/128 above it.
const STEPS = 128

// Latencies in ns, in 64 KiB whatever their number.
class Histogram {
  constructor () {
    this.counts = new Float64Array(48 * STEPS)
    this.count = 0
    this.sum = 0
    this.squares = 0
    this.min = Infinity
    this.max = 0
  }

  record (value) {
    // Math.clz32 sees 32 bits; longer latencies than 4 s are first divided.
    let shift = 0
    let rest = value
    while (rest >= 2 ** 31) {
      rest = Math.floor(rest / 2)
      shift++
    }
    const more = Math.max(24 - Math.clz32(rest), 0)
    this.counts[(shift + more) * STEPS + (rest >>> more)]++
    this.count++
    this.sum += value
    this.squares += value * value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
  }

  // `other` may have come from another thread, as plain data.
  add (other) {
    for (let i = 0; i < this.counts.length; i++) this.counts[i] += other.counts[i]
    this.count += other.count
    this.sum += other.sum
    this.squares += other.squares
    this.min = Math.min(this.min, other.min)
    this.max = Math.max(this.max, other.max)
  }

  percentile (p) {
    const rank = Math.max(Math.ceil(this.count * p / 100), 1)
    let seen = 0
    for (let i = 0; i < this.counts.length; i++) {
      seen += this.counts[i]
      if (seen >= rank) return Math.min(highest(i), this.max)
    }
    return 0
  }

  latency () {
    if (this.count === 0) return undefined
    const mean = this.sum / this.count
    return {
      count: this.count,
      min: this.min,
      mean,
      stdev: Math.sqrt(Math.max(this.squares / this.count - mean * mean, 0)),
      p50: this.percentile(50),
      p75: this.percentile(75),
      p90: this.percentile(90),
      p99: this.percentile(99),
      p99_9: this.percentile(99.9),
      p99_99: this.percentile(99.99),
      max: this.max
    }
  }
}

// The greatest value that is counted at this index.
function highest (index) {
  if (index < 2 * STEPS) return index
  const shift = Math.floor(index / STEPS) - 1
  return (index - shift * STEPS + 1) * 2 ** shift - 1
}

module.exports = { Histogram }
