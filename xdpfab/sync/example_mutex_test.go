// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// start joins a client and a home in memory. On real nodes the home is a daemon.
func start(ctx context.Context) (at sync.Place, end func()) {
	net, err := xdpfab.NewNetwork(2)
	if err != nil {
		log.Fatal(err)
	}
	s, err := net.Node(1).Serve("parts", 64<<10)
	if err != nil {
		log.Fatal(err)
	}
	peer, err := net.Node(0).Dial(ctx, s.Name())
	if err != nil {
		log.Fatal(err)
	}
	return sync.Place{Home: peer, Region: "parts"}, func() { _ = net.Close() }
}

// A program that needs the lock again and again does not wait for each release.
func ExampleHeld_StartUnlock() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewMutex(ctx, at, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	var held *sync.Held
	for range 3 {
		if held, err = lock.Lock(ctx); err != nil {
			log.Fatal(err)
		}
		if err := held.StartUnlock(); err != nil { // the lock may have been lost
			log.Fatal(err)
		}
	}
	fmt.Println(held.Unlock()) // waits for the last release
	// Output: <nil>
}

func ExampleMutex() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewMutex(ctx, at, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	var last uint64
	for range 2 {
		held, err := lock.Lock(ctx) // the first one waits for a lease: the memory is new
		if err != nil {
			log.Fatal(err)
		}
		// What the lock protects is done with held.Context(), and refuses old tokens.
		fmt.Println(held.Context().Err(), held.Token() > last)
		last = held.Token()
		fmt.Println(held.Unlock())
	}
	// Output:
	// <nil> true
	// <nil>
	// <nil> true
	// <nil>
}

// A task that one program at a time does, and that the others leave to it.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewMutex(ctx, at, 2*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	held, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, ok, err := lock.TryLock(ctx)
	fmt.Println(ok, err)
	if err := held.Unlock(); err != nil {
		log.Fatal(err)
	}
	held, ok, err = lock.TryLock(ctx)
	fmt.Println(ok, err)
	fmt.Println(held.Unlock())
	// Output:
	// false <nil>
	// true <nil>
	// <nil>
}
