// The ping and hello endpoints on fasthttp, with goccy/go-json.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

type ping struct {
	// A pointer tells a missing sequence from zero.
	Sequence *uint64 `json:"sequence"`
}

func handlePing(ctx *fasthttp.RequestCtx) {
	var message ping
	if err := json.Unmarshal(ctx.PostBody(), &message); err != nil || message.Sequence == nil {
		ctx.Error("expected an object with a sequence", fasthttp.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(message)
	if err != nil {
		ctx.Error("cannot serialise", fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(answer)
}

func handleHello(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("Hello, World!")
}

func handle(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case "/ping":
		if !ctx.IsPost() {
			ctx.Error("use POST", fasthttp.StatusMethodNotAllowed)
			return
		}
		handlePing(ctx)
	case "/hello":
		if !ctx.IsGet() && !ctx.IsHead() {
			ctx.Error("use GET", fasthttp.StatusMethodNotAllowed)
			return
		}
		handleHello(ctx)
	default:
		ctx.Error("not found", fasthttp.StatusNotFound)
	}
}

func main() {
	host := flag.String("host", "127.0.0.1", "address to listen on")
	port := flag.Int("port", 0, "port to listen on")
	flag.Parse()

	server := &fasthttp.Server{
		Handler:            handle,
		IdleTimeout:        75 * time.Second,
		MaxRequestBodySize: 1 << 20,
		CloseOnShutdown:    true,
	}

	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	failed := make(chan error, 1)
	// The backlog is net.core.somaxconn: Go's listeners always ask for that.
	go func() { failed <- server.ListenAndServe(net.JoinHostPort(*host, strconv.Itoa(*port))) }()

	select {
	case err := <-failed:
		log.Fatal(err)
	case <-terminated.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := server.ShutdownWithContext(deadline); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		log.Fatal(err)
	}
}
