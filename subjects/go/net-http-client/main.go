// A client in a closed loop on Go's net/http: each goroutine asks, reads the body to its end and asks again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"
)

// How long requests that are under way at the end may take to end.
const drain = 5 * time.Second

type counts struct {
	answered, inFlight, bytes uint64
	failed                    map[string]uint64
	connectFailed             uint64
}

// Latencies of some of the workers: of each one alone they would be too large with many connections.
type shared struct {
	lock      sync.Mutex
	histogram histogram
}

func (s *shared) record(latency time.Duration) {
	s.lock.Lock()
	s.histogram.record(uint64(latency))
	s.lock.Unlock()
}

type worker struct {
	client    *http.Client
	request   *http.Request
	deadline  time.Time
	counts    counts
	latencies *shared
}

// run asks until the deadline. One request is used again and again, which net/http allows once its answer's body is closed.
func (w *worker) run() {
	buffer := make([]byte, 32<<10)
	for started := time.Now(); started.Before(w.deadline); {
		bytes, err := w.ask(buffer)
		ended := time.Now()
		switch {
		case notMade(err):
			w.counts.connectFailed++
		case ended.After(w.deadline):
			w.counts.inFlight++
		case err != nil:
			w.fail(err)
		default:
			w.counts.answered++
			w.counts.bytes += uint64(bytes)
			w.latencies.record(ended.Sub(started))
		}
		started = ended
	}
}

var errStatus = errors.New("status")

func (w *worker) ask(buffer []byte) (int64, error) {
	response, err := w.client.Do(w.request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	read := int64(0)
	for {
		n, err := response.Body.Read(buffer)
		read += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return read, err
		}
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return read, errStatus
	}
	return read, nil
}

// notMade says whether it is the connection that could not be made: then no request was sent.
func notMade(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "dial"
}

func (w *worker) fail(err error) {
	var operation *net.OpError
	switch {
	case errors.Is(err, errStatus):
		w.counts.failed["status"]++
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		w.counts.failed["closed"]++
	case errors.As(err, &operation):
		w.counts.failed[operation.Op]++
	default:
		w.counts.failed["other"]++
	}
}

func client(connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxConnsPerHost:     connections,
			MaxIdleConns:        connections,
			MaxIdleConnsPerHost: connections,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func drive(target string, connections, threads int, duration time.Duration) (counts, histogram) {
	common := client(connections)
	latencies := make([]shared, min(connections, 8*threads))
	started := time.Now()
	deadline := started.Add(duration)
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(drain))
	defer cancel()
	workers := make([]worker, connections)
	var all sync.WaitGroup
	for i := range workers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			refuse(err.Error())
		}
		workers[i] = worker{
			client: common, request: request, deadline: deadline,
			counts: counts{failed: map[string]uint64{}}, latencies: &latencies[i%len(latencies)],
		}
		all.Add(1)
		go func() {
			defer all.Done()
			workers[i].run()
		}()
	}
	all.Wait()
	sum := counts{failed: map[string]uint64{}}
	for i := range workers {
		sum.add(&workers[i].counts)
	}
	var merged histogram
	for i := range latencies {
		merged.add(&latencies[i].histogram)
	}
	return sum, merged
}

func (c *counts) add(other *counts) {
	c.answered += other.answered
	c.inFlight += other.inFlight
	c.bytes += other.bytes
	c.connectFailed += other.connectFailed
	for kind, count := range other.failed {
		c.failed[kind] += count
	}
}

func (c *counts) line(connections, threads int, elapsed time.Duration, latencies *histogram) map[string]any {
	failed := uint64(0)
	for _, count := range c.failed {
		failed += count
	}
	return map[string]any{
		"measure": "requests", "threads": threads, "count": c.answered,
		"elapsed_ns": elapsed.Nanoseconds(), "bytes": c.bytes,
		"client": map[string]any{
			"connections": connections, "failed": failed, "failed_by_kind": c.failed,
			"in_flight": c.inFlight, "latency": latencies.latency(),
		},
		"tallies": map[string]uint64{"connect_failed": c.connectFailed},
	}
}

func refuse(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(2)
}

func main() {
	target := flag.String("url", "", "what to ask for")
	connections := flag.Int("connections", 1, "connections in all")
	threads := flag.Int("threads", 1, "GOMAXPROCS")
	seconds := flag.Int("seconds", 1, "for how long")
	flag.Parse()
	parsed, err := url.Parse(*target)
	switch {
	case err != nil || parsed.Scheme != "http" || parsed.Host == "":
		refuse("--url is not http://HOST:PORT/PATH")
	case *connections < 1 || *threads < 1 || *seconds < 1:
		refuse("--connections, --threads and --seconds are at least 1")
	}
	runtime.GOMAXPROCS(*threads)
	duration := time.Duration(*seconds) * time.Second
	sum, latencies := drive(*target, *connections, *threads, duration)
	if err := json.NewEncoder(os.Stdout).Encode(sum.line(*connections, *threads, duration, &latencies)); err != nil {
		os.Exit(1)
	}
}
