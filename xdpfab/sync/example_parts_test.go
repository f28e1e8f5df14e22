// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

func ExampleBarrier() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	there := make(chan error)
	for party := range 2 { // each a program on a node of its own
		b, err := sync.NewBarrier(ctx, at, 2, party)
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			_, err := b.Await(ctx)
			there <- err
		}()
	}
	fmt.Println(<-there, <-there)
	// Output: <nil> <nil>
}

func ExampleCountdown() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	c, err := sync.NewCountdown(ctx, at, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Done(ctx, 0), c.Done(ctx, 0)) // twice does no harm
	fmt.Println(c.Left(ctx))
	fmt.Println(c.Done(ctx, 1), c.Wait(ctx))
	// Output:
	// <nil> <nil>
	// 1 <nil>
	// <nil> <nil>
}

func ExampleLimiter() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	l, err := sync.NewLimiter(ctx, at, 1024, 2, 1000*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		fmt.Println(l.Allow(ctx, "a customer", 1))
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleCounter() {
	ctx := context.Background()
	one, end := start(ctx)
	defer end()
	other, end := start(ctx)
	defer end()
	c, err := sync.NewCounter(ctx, one, other)
	if err != nil {
		log.Fatal(err)
	}
	for range 10 {
		if err := c.Add(ctx, 1); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(c.Sum(ctx))
	// Output: 10 <nil>
}

func ExampleHistogram() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	h, err := sync.NewHistogram(ctx, at, 10, 100, 1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Record(ctx, 3, 50, 51, 5000))
	fmt.Println(h.Counts(ctx))
	// Output:
	// <nil>
	// [1 2 0 1] <nil>
}

func ExampleBoard() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	b, err := sync.NewBoard(ctx, at, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Post(ctx, 7, 300), b.Post(ctx, 8, 500), b.Post(ctx, 8, 400))
	fmt.Println(b.Top(ctx, 2))
	// Output:
	// <nil> <nil> <nil>
	// [{8 500} {7 300}] <nil>
}
