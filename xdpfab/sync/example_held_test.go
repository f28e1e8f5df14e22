// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

func ExampleSemaphore() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	s, err := sync.NewSemaphore(ctx, at, 2, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		permit, err := s.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer permit.Unlock()
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = s.Acquire(soon) // both are taken
	fmt.Println(err != nil)
	// Output: true
}

func ExampleRWMutex() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewRWMutex(ctx, at, 8, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	a, err := lock.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := lock.RLock(ctx) // at the same time
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Unlock(), b.Unlock())
	writer, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(writer.Unlock())
	// Output:
	// <nil> <nil>
	// <nil>
}

// A reader waits as long as a writer has the lock, and at most as long as its context.
func ExampleRWMutex_RLock() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewRWMutex(ctx, at, 8, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	writer, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = lock.RLock(soon)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	read := make(chan error)
	go func() {
		reader, err := lock.RLock(ctx) // returns once the writer has unlocked
		if err == nil {
			err = reader.Unlock()
		}
		read <- err
	}()
	fmt.Println(writer.Unlock(), <-read)
	// Output:
	// true
	// <nil> <nil>
}

func ExampleOnce() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	once, err := sync.NewOnce(ctx, at, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		fmt.Println(once.Do(ctx, func(context.Context, uint64) (uint64, error) {
			fmt.Println("only once")
			return 42, nil
		}))
	}
	// Output:
	// only once
	// 42 <nil>
	// 42 <nil>
}

func ExampleElection() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	election, err := sync.NewElection(ctx, at, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	leads, err := election.Campaign(ctx, 7) // the value that others see, such as a node's number
	if err != nil {
		log.Fatal(err)
	}
	value, _, ok, err := election.Leader(ctx)
	fmt.Println(value, ok, err)
	fmt.Println(leads.Unlock())
	// Output:
	// 7 true <nil>
	// <nil>
}
