// Goroutines does one work on one thread or on many, and prints what came of it as a line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	countMax   = 1<<32 - 1
	threadsMax = 1024
)

type options struct {
	count       uint64
	threads     uint64
	constructor bool
	priorities  uint64
	handler     string
	payload     uint64
	byTasks     bool
}

// outcome is what came of a work on one thread.
type outcome struct {
	checksum uint64
	bytes    uint64
}

type work struct {
	measure string
	run     func(options) outcome
}

var works = map[string]work{
	"coroutine":  {"coroutines", coroutine},
	"event":      {"events", event},
	"start":      {"services", start},
	"start-stop": {"cycles", startStop},
	"serializer": {"messages", serializer},
}

type line struct {
	Measure   string `json:"measure"`
	Threads   uint64 `json:"threads"`
	Count     uint64 `json:"count"`
	ElapsedNs int64  `json:"elapsed_ns"`
	Bytes     uint64 `json:"bytes"`
	Checksum  string `json:"checksum"`
}

func main() {
	work, options, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(int(options.threads))
	begun := time.Now()
	sum := run(work, options)
	elapsed := time.Since(begun)
	text, err := json.Marshal(line{
		Measure:   work.measure,
		Threads:   options.threads,
		Count:     options.count * options.threads,
		ElapsedNs: elapsed.Nanoseconds(),
		Bytes:     sum.bytes,
		Checksum:  fmt.Sprint(sum.checksum),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

// run does the whole work once for each thread that may run at the same time.
func run(work work, options options) outcome {
	outcomes := make([]outcome, options.threads)
	var group sync.WaitGroup
	for i := range outcomes {
		group.Add(1)
		go func() {
			defer group.Done()
			outcomes[i] = work.run(options)
		}()
	}
	group.Wait()
	var sum outcome
	for _, one := range outcomes {
		sum.checksum += one.checksum
		sum.bytes += one.bytes
	}
	return sum
}

func parse(words []string) (work, options, error) {
	set := flag.NewFlagSet("goroutines", flag.ContinueOnError)
	set.SetOutput(os.Stderr)
	name := set.String("work", "", "what to do")
	count := set.Uint64("count", 0, "how often, on each thread")
	threads := set.Uint64("threads", 1, "how many at the same time")
	injection := set.String("injection", "explicit", "explicit or constructor: how a service gets what it requires")
	priorities := set.Uint64("priorities", 1, "1 or 8: of how many priorities the events are")
	handler := set.String("handler", "coroutine", "coroutine, plain or none: what sees the events")
	payload := set.Uint64("payload", 0, "0 or 32: bytes that each event carries")
	through := set.String("through", "events", "events or tasks: by which way the second coroutine comes to run")
	if err := set.Parse(words); err != nil {
		return work{}, options{}, err
	}
	chosen, known := works[*name]
	switch {
	case set.NArg() > 0:
		return work{}, options{}, fmt.Errorf("unknown word %q", set.Arg(0))
	case !known:
		return work{}, options{}, fmt.Errorf("no work named %q; there is %s", *name, names())
	case *count < 1 || *count > countMax:
		return work{}, options{}, fmt.Errorf("--count is from 1 to %d, not %d", countMax, *count)
	case *threads < 1 || *threads > threadsMax:
		return work{}, options{}, fmt.Errorf("--threads is from 1 to %d, not %d", threadsMax, *threads)
	case *injection != "explicit" && *injection != "constructor":
		return work{}, options{}, fmt.Errorf("--injection is explicit or constructor, not %q", *injection)
	case *handler != "coroutine" && *handler != "plain" && *handler != "none":
		return work{}, options{}, fmt.Errorf("--handler is coroutine, plain or none, not %q", *handler)
	case *payload != 0 && *payload != 32:
		return work{}, options{}, fmt.Errorf("--payload is 0 or 32, not %d", *payload)
	case *through != "events" && *through != "tasks":
		return work{}, options{}, fmt.Errorf("--through is events or tasks, not %q", *through)
	case *priorities != 1 && *priorities != 8:
		return work{}, options{}, fmt.Errorf("--priorities is 1 or 8, not %d", *priorities)
	}
	return chosen, options{
		*count, *threads, *injection == "constructor", *priorities, *handler, *payload, *through == "tasks",
	}, nil
}

func names() string {
	var all []string
	for name := range works {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
