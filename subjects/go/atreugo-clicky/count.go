package main

import "sync/atomic"

// Set once nothing may be added any more. In the same word as the count, so that no click is acknowledged after
// the last value was taken.
const closed = 1 << 63

// Count is the one number, which any goroutine may add to until it is closed.
type Count struct{ value atomic.Uint64 }

func (count *Count) Get() uint64 { return count.value.Load() &^ closed }

// Add returns the new total, or false once it is closed.
func (count *Count) Add(clicks uint64) (uint64, bool) {
	after := count.value.Add(clicks)
	return after, after&closed == 0
}

// Merge takes in what others have added to the same counter.
func (count *Count) Merge(others int64) { count.value.Add(uint64(others)) }

// Close closes it and returns the last value.
func (count *Count) Close() uint64 { return count.value.Or(closed) &^ closed }
