package main

import (
	"fmt"
	"log/slog"
	"time"
)

const (
	// For how long the last value is tried. With the server's own shutdown it stays below the 5 s after which a
	// supervisor may kill.
	lastChance = 2 * time.Second
	retry      = 100 * time.Millisecond
)

// Keeper brings the count to its store, beside the requests, so that none waits for it. Nil where there is none.
type Keeper struct {
	store Store
	stop  chan struct{}
	ended chan struct{}
}

// Loads the count and starts to keep it.
func startKeeper(settings *Settings, count *Count) (*Keeper, error) {
	store, stored, err := openStore(settings)
	if store == nil || err != nil {
		return nil, err
	}
	count.Merge(int64(stored))
	keeper := &Keeper{store, make(chan struct{}), make(chan struct{})}
	go keeper.keep(count, settings.syncEvery)
	return keeper, nil
}

func (keeper *Keeper) keep(count *Count, every time.Duration) {
	defer close(keeper.ended)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-keeper.stop:
			return
		case <-ticker.C:
		}
		others, err := keeper.store.Save(count.Get())
		if err != nil {
			// The next turn saves all that this one did not.
			slog.Error("the count was not saved", "error", err)
			continue
		}
		count.Merge(others)
	}
}

// Finish stores the last value and ends.
func (keeper *Keeper) Finish(last uint64) error {
	if keeper == nil {
		return nil
	}
	close(keeper.stop)
	<-keeper.ended
	deadline := time.Now().Add(lastChance)
	for {
		_, err := keeper.store.Save(last)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the last count, %d, was not saved: %w", last, err)
		}
		time.Sleep(retry)
	}
}
