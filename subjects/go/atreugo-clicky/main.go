// A click counter on Atreugo: GET / answers the count, POST / adds 0 to 500 to it. A keeper beside it brings the
// count to a file or to Redis from time to time and at the end.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/savsgio/atreugo/v11"
	"github.com/valyala/fasthttp"
)

const (
	clicksMax = 500
	// A body above this is refused unread.
	bodyBytesMax = 1024
	shutdownTime = 2 * time.Second
)

func number(ctx *atreugo.RequestCtx, count uint64) error {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBody(strconv.AppendUint(nil, count, 10))
	return nil
}

func current(count *Count) atreugo.View {
	return func(ctx *atreugo.RequestCtx) error { return number(ctx, count.Get()) }
}

func add(count *Count) atreugo.View {
	return func(ctx *atreugo.RequestCtx) error {
		clicks, ok := clicks(ctx.PostBody())
		if !ok {
			return ctx.TextResponse("expected a number from 0 to 500", fasthttp.StatusBadRequest)
		}
		total, ok := count.Add(clicks)
		if !ok {
			return ctx.TextResponse("closing", fasthttp.StatusServiceUnavailable)
		}
		return number(ctx, total)
	}
}

// One to three decimal digits, and nothing else.
func clicks(body []byte) (uint64, bool) {
	if len(body) > 3 {
		return 0, false
	}
	clicks, err := strconv.ParseUint(string(body), 10, 16)
	return clicks, err == nil && clicks <= clicksMax
}

// Atreugo leaves the fields for other origins to a middleware.
func allowOrigins(ctx *atreugo.RequestCtx) error {
	if len(ctx.Request.Header.Peek("Origin")) > 0 {
		ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	}
	return ctx.Next()
}

func preflight(ctx *atreugo.RequestCtx) error {
	ctx.Response.Header.Set("Access-Control-Allow-Methods", "GET, POST")
	if asked := ctx.Request.Header.Peek("Access-Control-Request-Headers"); len(asked) > 0 {
		ctx.Response.Header.SetBytesV("Access-Control-Allow-Headers", asked)
	}
	ctx.Response.Header.Set("Access-Control-Max-Age", "3600")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func logRequest(ctx *atreugo.RequestCtx) {
	slog.Info("request", "peer", ctx.RemoteAddr(), "method", string(ctx.Method()), "path", string(ctx.Path()),
		"status", ctx.Response.StatusCode(), "bytes", len(ctx.Response.Body()), "took", time.Since(ctx.Time()))
}

func newServer(address string, log slog.Handler, count *Count) *atreugo.Atreugo {
	server := atreugo.New(atreugo.Config{
		Addr:               address,
		Logger:             slog.NewLogLogger(log, slog.LevelInfo),
		IdleTimeout:        75 * time.Second,
		MaxRequestBodySize: bodyBytesMax,
		CloseOnShutdown:    true,
	})
	server.UseBefore(allowOrigins)
	if log.Enabled(context.Background(), slog.LevelInfo) {
		server.UseFinal(logRequest)
	}
	server.GET("/", current(count))
	server.HEAD("/", current(count))
	server.POST("/", add(count))
	server.OPTIONS("/", preflight)
	return server
}

// Serves until SIGTERM, and then until what was begun is answered.
func serve(server *atreugo.Atreugo) error {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-terminated.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.ShutdownWithContext(deadline); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func run() error {
	settings, err := settingsFromEnvironment()
	if err != nil {
		return err
	}
	slog.SetDefault(slog.New(settings.log))
	runtime.GOMAXPROCS(settings.threads)
	count := &Count{}
	keeper, err := startKeeper(settings, count)
	if err != nil {
		return err
	}
	err = serve(newServer(settings.address, settings.log, count))
	return errors.Join(err, keeper.Finish(count.Close()))
}

func main() {
	if err := run(); err != nil {
		os.Stderr.WriteString("atreugo-clicky: " + err.Error() + "\n")
		os.Exit(1)
	}
}
