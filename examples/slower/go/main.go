// A server that does rounds of arithmetic for each answer, and so many percent more of its time as it is told.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
)

const (
	base = 5_000
	// About one percent of what an answer takes, found by timing two numbers of rounds.
	percent = 104
)

// rounds of xorshift, each waiting for the one before.
func rounds(count int, seed uint64) uint64 {
	for i := 0; i < count; i++ {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
	}
	return seed
}

func main() {
	port := flag.Int("port", 0, "port to listen on")
	slower := flag.Int("slower", 0, "by so many percent")
	flag.Parse()
	count := base + *slower*percent
	http.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) {
		// Zero never comes out, so that the rounds cannot be left out.
		if rounds(count, 88172645463325252) == 0 {
			log.Fatal("xorshift cannot reach zero")
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "Hello, World!")
	})
	log.Fatal(http.ListenAndServe(net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)), nil))
}
