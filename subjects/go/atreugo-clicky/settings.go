package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"time"
)

// Settings are what the environment says.
type Settings struct {
	address, backend, file, redisURL string
	threads                          int
	syncEvery                        time.Duration
	log                              slog.Handler
}

func variable(name, usual string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return usual
}

func settingsFromEnvironment() (*Settings, error) {
	settings := &Settings{
		address:  variable("SERVER_ADDRESS", "127.0.0.1:8080"),
		backend:  variable("CLICKY_BACKEND", "file"),
		file:     variable("CLICKY_COUNTER_FILE", "clicky.txt"),
		redisURL: variable("CLICKY_REDIS_URL", "redis://127.0.0.1:6379"),
		log:      logHandler(),
	}
	var err error
	settings.threads, err = strconv.Atoi(variable("CLICKY_THREADS", strconv.Itoa(runtime.GOMAXPROCS(0))))
	if err != nil || settings.threads < 1 {
		return nil, fmt.Errorf("CLICKY_THREADS is not a number from 1")
	}
	settings.syncEvery, err = time.ParseDuration(variable("CLICKY_SYNC_FREQUENCY", "1s"))
	if err != nil || settings.syncEvery <= 0 {
		return nil, fmt.Errorf("CLICKY_SYNC_FREQUENCY is not a time such as 500ms, 1s or 2m")
	}
	switch settings.backend {
	case "none", "file", "redis":
		return settings, nil
	}
	return nil, fmt.Errorf("CLICKY_BACKEND is none, file or redis, not %s", settings.backend)
}

// To standard output, from the level on that RUST_LOG says.
func logHandler() slog.Handler {
	if _, quiet := os.LookupEnv("CLICKY_NO_LOGGING"); quiet {
		return slog.DiscardHandler
	}
	levels := map[string]slog.Level{
		"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug,
	}
	level, ok := levels[variable("RUST_LOG", "info")]
	if !ok {
		return slog.DiscardHandler
	}
	return slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: level})
}
