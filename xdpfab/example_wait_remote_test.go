// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A lock in a word: a node gets it when the word is 0, and writes its number. Whoever
// finds it taken waits at the word's owner, and nobody polls. The lock goes to those who
// wait in the order in which they came. A holder that dies keeps it: package sync has
// locks with leases.
func ExampleRemote_WaitCompareAndSwap() {
	ctx := context.Background()
	const nodes = 3
	net, err := xdpfab.NewNetwork(1 + nodes)
	if err != nil {
		log.Fatal(err)
	}
	defer net.Close()
	if _, err := net.Node(0).Serve("lock", 4096); err != nil {
		log.Fatal(err)
	}

	shared := 0 // guarded by the lock
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			peer, err := net.Node(1+i).Dial(ctx, net.Node(0).Name(0))
			if err != nil {
				log.Fatal(err)
			}
			lock, err := xdpfab.Word[uint64](ctx, peer, "lock", 0)
			if err != nil {
				log.Fatal(err)
			}
			me := uint64(1 + i)
			for range 100 {
				if err := lock.WaitCompareAndSwap(ctx, 0, me); err != nil {
					log.Fatal(err)
				}
				shared++
				if err := lock.Store(ctx, 0); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	all.Wait()
	fmt.Println(shared)
	// Output: 300
}

// A producer waits until the reader of its ring has read so much, and leaves the word as
// it is: once the word is 8 or more, 0 is taken off.
func ExampleRemote_WaitCompare() {
	ctx := context.Background()
	producer, reader, err := xdpfab.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	defer reader.CloseAll()
	defer producer.CloseAll()
	ring, err := reader.Serve("ring", 4096)
	if err != nil {
		log.Fatal(err)
	}
	done, err := ring.Region.Uint64(0) // how much the reader has read
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		done.Store(9)
		ring.Region.Changed() // the owner's own change
	}()

	peer, err := producer.Dial(ctx, ring.Name())
	if err != nil {
		log.Fatal(err)
	}
	word, err := xdpfab.Word[uint64](ctx, peer, "ring", 0)
	if err != nil {
		log.Fatal(err)
	}
	n, err := word.WaitCompare(ctx, atomic.DiffAtLeast, 8, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, done.Load())
	// Output: 9 9
}
