package main

import (
	"math"
	"math/bits"
)

// Buckets for each power of two: what is told of a value is at most 1/128 above it.
const steps = 128

// Latencies in ns, in 64 KiB whatever their number.
type histogram struct {
	counts       [(64 - 6) * steps]uint64
	count        uint64
	sum, squares float64
	min, max     uint64
}

func bucket(value uint64) int {
	shift := max(bits.Len64(value)-8, 0)
	return shift*steps + int(value>>shift)
}

// highest is the greatest value that bucket gives this index.
func highest(index int) uint64 {
	if index < 2*steps {
		return uint64(index)
	}
	shift := index/steps - 1
	return uint64(index-shift*steps+1)<<shift - 1
}

func (h *histogram) record(value uint64) {
	if h.count == 0 || value < h.min {
		h.min = value
	}
	h.max = max(h.max, value)
	h.counts[bucket(value)]++
	h.count++
	h.sum += float64(value)
	h.squares += float64(value) * float64(value)
}

func (h *histogram) add(other *histogram) {
	if other.count == 0 {
		return
	}
	if h.count == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.count += other.count
	h.sum += other.sum
	h.squares += other.squares
}

func (h *histogram) percentile(p float64) uint64 {
	rank := max(uint64(math.Ceil(float64(h.count)*p/100)), 1)
	seen := uint64(0)
	for i, count := range h.counts {
		if seen += count; seen >= rank {
			return min(highest(i), h.max)
		}
	}
	return 0
}

type latency struct {
	Count uint64  `json:"count"`
	Min   uint64  `json:"min"`
	Mean  float64 `json:"mean"`
	Stdev float64 `json:"stdev"`
	P50   uint64  `json:"p50"`
	P75   uint64  `json:"p75"`
	P90   uint64  `json:"p90"`
	P99   uint64  `json:"p99"`
	P999  uint64  `json:"p99_9"`
	P9999 uint64  `json:"p99_99"`
	Max   uint64  `json:"max"`
}

func (h *histogram) latency() latency {
	if h.count == 0 {
		return latency{}
	}
	mean := h.sum / float64(h.count)
	return latency{
		Count: h.count, Min: h.min, Max: h.max, Mean: mean,
		Stdev: math.Sqrt(max(h.squares/float64(h.count)-mean*mean, 0)),
		P50:   h.percentile(50), P75: h.percentile(75), P90: h.percentile(90),
		P99: h.percentile(99), P999: h.percentile(99.9), P9999: h.percentile(99.99),
	}
}
