package main

import (
	"encoding/json"
	"fmt"
	"sync"
)

// message is an event, whatever it carries.
type message interface {
	kind() uint32
	number() uint64
	sum() uint64 // of the words that it carries
}

const (
	useless = 1 + iota
	resume
)

type plainEvent struct {
	id       uint64
	origin   uint64
	priority uint64
	name     uint32
}

func (e *plainEvent) kind() uint32   { return e.name }
func (e *plainEvent) number() uint64 { return e.id }
func (*plainEvent) sum() uint64      { return 0 }

type loadedEvent struct {
	plainEvent
	words [4]uint64
}

func (e *loadedEvent) sum() uint64 { return e.words[0] + e.words[1] + e.words[2] + e.words[3] }

// events is a queue by priority: a list for each, in the order in which they were pushed. Any goroutine may push.
type events struct {
	mutex  sync.Mutex
	lists  [][]message
	pushed *sync.Cond
	closed bool
}

func newEvents(priorities uint64) *events {
	queue := &events{lists: make([][]message, priorities)}
	queue.pushed = sync.NewCond(&queue.mutex)
	return queue
}

func (e *events) push(level uint64, event message) {
	e.mutex.Lock()
	e.lists[level] = append(e.lists[level], event)
	e.mutex.Unlock()
	e.pushed.Signal()
}

// close lets the dispatcher end when all that was pushed has been handled.
func (e *events) close() {
	e.mutex.Lock()
	e.closed = true
	e.mutex.Unlock()
	e.pushed.Signal()
}

// pop waits for the next event; nil when the queue is closed and empty.
func (e *events) pop() message {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for {
		for level, list := range e.lists {
			if len(list) > 0 {
				event := list[0]
				list[0] = nil // so that it can be freed
				e.lists[level] = list[1:]
				return event
			}
		}
		if e.closed {
			return nil
		}
		e.pushed.Wait()
	}
}

// handler is called with each event of a kind, in a goroutine of its own if it is a coroutine; the next event is
// dispatched when that has ended, because they keep their order.
type handler struct {
	handle    func(message)
	coroutine bool
}

// dispatch calls the handlers of all events until the queue is closed, and returns how many came.
func (e *events) dispatch(handlers map[uint32]handler) uint64 {
	var dispatched uint64
	done := make(chan struct{})
	for event := e.pop(); event != nil; event = e.pop() {
		dispatched++
		handler, known := handlers[event.kind()]
		switch {
		case !known:
		case handler.coroutine:
			go func() {
				handler.handle(event)
				done <- struct{}{}
			}()
			<-done
		default:
			handler.handle(event)
		}
	}
	return dispatched
}

// coroutine has a goroutine wait at a channel; for each round an event goes through the queue, whose handler sends to it.
func coroutine(options options) outcome {
	if options.byTasks {
		return coroutineByTasks(options)
	}
	ready := make(chan struct{})
	var sum uint64
	queue := newEvents(1)
	handlers := map[uint32]handler{resume: {func(event message) {
		sum += event.number() - 1
		ready <- struct{}{}
	}, true}}
	ended := make(chan struct{})
	go func() {
		queue.dispatch(handlers)
		close(ended)
	}()
	for round := range options.count {
		queue.push(0, &plainEvent{id: round + 1, origin: 1, priority: 1000, name: resume})
		<-ready
		sum++
	}
	queue.close()
	<-ended
	return outcome{checksum: sum}
}

// coroutineByTasks is the same by Go's own means: for each round it starts a goroutine, which sends to the waiting one.
func coroutineByTasks(options options) outcome {
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

// event pushes all events before it dispatches the first; a handler sees each.
func event(options options) outcome {
	queue := newEvents(options.priorities)
	for i := range options.count {
		level := i % options.priorities
		plain := plainEvent{id: i + 1, origin: 1, priority: 1000 + level, name: useless}
		if options.payload == 0 {
			queue.push(level, &plain)
		} else {
			queue.push(level, &loadedEvent{plain, [4]uint64{i + 1, i + 2, i + 3, i + 4}})
		}
	}
	queue.close()
	var checksum, seen uint64
	handlers := map[uint32]handler{}
	if options.handler != "none" {
		handlers[useless] = handler{func(event message) {
			seen++
			checksum += event.number()*(seen%7+1) + event.sum()
		}, options.handler == "coroutine"}
	}
	dispatched := queue.dispatch(handlers)
	if options.handler == "none" {
		checksum = dispatched
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
	sent := payload{Val: "five hundred"}
	for i := range options.count {
		sent.ID = 20 + i%64
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
