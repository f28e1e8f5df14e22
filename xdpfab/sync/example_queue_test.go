// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

func ExampleSequencer() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	s, err := sync.NewSequencer(ctx, at, 64)
	if err != nil {
		log.Fatal(err)
	}
	a, err := s.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := s.Next(ctx) // sends nothing: the block has 64
	fmt.Println(b-a, err)
	// Output: 1 <nil>
}

func ExampleQueue() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	q, err := sync.NewQueue(ctx, at, 16)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Put(ctx, 7), q.Put(ctx, 8))
	fmt.Println(q.Take(ctx))
	fmt.Println(q.Take(ctx))
	fmt.Println(q.TryTake(ctx)) // it is empty
	// Output:
	// <nil> <nil>
	// 7 <nil>
	// 8 <nil>
	// 0 false <nil>
}
