// The ping and hello endpoints on Go's standard library.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

type ping struct {
	// A pointer tells a missing sequence from zero.
	Sequence *uint64 `json:"sequence"`
}

const bodyBytesMax = 1 << 20

func handlePing(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}
	var message ping
	if err := json.Unmarshal(body, &message); err != nil || message.Sequence == nil {
		http.Error(w, "expected an object with a sequence", http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(message)
	if err != nil {
		http.Error(w, "cannot serialise", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer)
}

func handleHello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "Hello, World!")
}

func main() {
	host := flag.String("host", "127.0.0.1", "address to listen on")
	port := flag.Int("port", 0, "port to listen on")
	certificate := flag.String("certificate", "", "file with the certificate of TLS; without it there is none")
	key := flag.String("key", "", "file with its key")
	h2c := flag.Bool("h2c", false, "speak HTTP/2 without TLS, beside HTTP/1.1")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("POST /ping", handlePing)
	mux.HandleFunc("GET /hello", handleHello)
	server := &http.Server{
		Addr:              net.JoinHostPort(*host, strconv.Itoa(*port)),
		Handler:           mux,
		ReadHeaderTimeout: 60 * time.Second,
		IdleTimeout:       75 * time.Second,
	}

	if *h2c {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}

	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	failed := make(chan error, 1)
	// The backlog is net.core.somaxconn: Go's listeners always ask for that.
	go func() {
		if *certificate != "" {
			failed <- server.ListenAndServeTLS(*certificate, *key)
		} else {
			failed <- server.ListenAndServe()
		}
	}()

	select {
	case err := <-failed:
		log.Fatal(err)
	case <-terminated.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		log.Fatal(err)
	}
}
