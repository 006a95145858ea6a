package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	key          = "CLICKY_COUNTER"
	redisTimeout = time.Second
)

// Store keeps a count.
type Store interface {
	// Save stores the count as it is here. It returns what has to be added to it, because others have stored theirs.
	Save(count uint64) (int64, error)
}

// The store and the count that is in it; nil: nothing is to be kept.
func openStore(settings *Settings) (Store, uint64, error) {
	switch settings.backend {
	case "file":
		return openFile(settings.file)
	case "redis":
		return openRedis(settings.redisURL)
	}
	return nil, 0, nil
}

type fileStore struct {
	path  string
	saved uint64
}

func openFile(path string) (Store, uint64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &fileStore{path, 0}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	saved, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
	if err != nil {
		return nil, 0, fmt.Errorf("%s is not a count: %w", path, err)
	}
	return &fileStore{path, saved}, saved, nil
}

// Whole or not at all: a new file is on the disk before it takes the name of the old one.
func (store *fileStore) Save(count uint64) (int64, error) {
	if count == store.saved {
		return 0, nil
	}
	temporary := store.path + ".new"
	if err := writeSynced(temporary, strconv.FormatUint(count, 10)); err != nil {
		return 0, err
	}
	if err := os.Rename(temporary, store.path); err != nil {
		return 0, err
	}
	if err := syncFolder(filepath.Dir(store.path)); err != nil {
		return 0, err
	}
	store.saved = count
	return 0, nil
}

func writeSynced(path, text string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

type redisStore struct {
	client *redis.Client
	// What Redis had after the last save, and so what is here beside what came since.
	known uint64
}

func openRedis(url string) (Store, uint64, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, 0, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisTimeout, redisTimeout, redisTimeout
	// A command whose answer was lost may have been done: it is not sent again at once, but with the next turn.
	options.MaxRetries = -1
	client := redis.NewClient(options)
	known, err := client.Get(context.Background(), key).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, 0, fmt.Errorf("%s: %w", url, err)
	}
	return &redisStore{client, known}, known, nil
}

// Adds what came since the last save, so that several instances share one key. Where the key is gone, it begins
// again with what was known of it.
func (store *redisStore) Save(count uint64) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), redisTimeout)
	defer cancel()
	var sum *redis.IntCmd
	_, err := store.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.SetNX(ctx, key, store.known, 0)
		sum = pipe.IncrBy(ctx, key, int64(count-store.known))
		return nil
	})
	if err != nil {
		return 0, err
	}
	store.known = uint64(sum.Val())
	return sum.Val() - int64(count), nil
}
