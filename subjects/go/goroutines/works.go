package main

import (
	"encoding/json"
	"fmt"
)

// coroutine has a goroutine wait at a channel; for each round it starts another, which sends to it.
func coroutine(options options) outcome {
	ready := make(chan struct{})
	var sum uint64
	for round := range options.count {
		go func() {
			sum += round
			ready <- struct{}{}
		}()
		<-ready
		sum++
	}
	return outcome{checksum: sum}
}

type message interface {
	kind() uint32
	number() uint64
}

type useless struct {
	id       uint64
	origin   uint64
	priority uint64
}

func (*useless) kind() uint32     { return 1 }
func (u *useless) number() uint64 { return u.id }

// events is a queue by priority: a list for each, in the order in which they were pushed.
type events struct {
	lists [][]message
}

func (e *events) push(level uint64, event message) {
	e.lists[level] = append(e.lists[level], event)
}

// pop returns the next event, or nil.
func (e *events) pop() message {
	for level, list := range e.lists {
		if len(list) > 0 {
			event := list[0]
			list[0] = nil // so that it can be freed
			e.lists[level] = list[1:]
			return event
		}
	}
	return nil
}

// event pushes all events before it dispatches the first; there is no handler for them.
func event(options options) outcome {
	queue := events{lists: make([][]message, options.priorities)}
	handlers := map[uint32]func(message){}
	for i := range options.count {
		level := i % options.priorities
		queue.push(level, &useless{id: i + 1, priority: 1000 + level})
	}
	var checksum, dispatched uint64
	for event := queue.pop(); event != nil; event = queue.pop() {
		if handle, known := handlers[event.kind()]; known {
			handle(event)
			continue
		}
		dispatched++
		checksum += event.number() * (dispatched%7 + 1)
	}
	return outcome{checksum: checksum}
}

type payload struct {
	ID  uint64 `json:"id"`
	Val string `json:"val"`
}

// serializer writes a message as JSON to a fresh buffer, and reads it back.
func serializer(options options) outcome {
	var sum outcome
	for i := range options.count {
		sent := payload{ID: 20 + i%64, Val: "five hundred"}
		text, err := json.Marshal(sent)
		if err != nil {
			panic(err)
		}
		var back payload
		if err := json.Unmarshal(text, &back); err != nil {
			panic(err)
		}
		if back != sent {
			panic(fmt.Sprintf("a message did not come back as it was: %s", text))
		}
		sum.bytes += uint64(len(text))
		sum.checksum += back.ID + uint64(len(back.Val))
	}
	return sum
}
