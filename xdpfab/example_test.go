// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// nodes returns two domains, the second of which serves a region "counters". On
// real interfaces they are made with Open, on two machines.
func nodes() (client, server *xdpfab.Domain) {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := server.NewRegion("counters", 4096); err != nil {
		log.Fatal(err)
	}
	ep, err := server.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		log.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		log.Fatal(err)
	}
	return client, server
}

// A counter in another node's memory.
func ExampleWord() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0)
	if err != nil {
		log.Fatal(err)
	}
	for range 41 {
		if _, err := hits.Add(ctx, 1); err != nil {
			log.Fatal(err)
		}
	}
	n, err := hits.Add(ctx, 1)
	fmt.Println(n, err)
	// Output: 42 <nil>
}

// Many counters at once.
func ExampleVector() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	counters, err := xdpfab.Vector[uint64](ctx, peer, "counters")
	if err != nil {
		log.Fatal(err)
	}
	sums := make([]uint64, 4)
	err = counters.Add(ctx, []uint64{7, 300, 7, 8}, []uint64{1, 2, 3, 4}, sums)
	fmt.Println(sums, err)
	// Output: [1 2 4 4] <nil>
}

// Many words side by side: a histogram.
func ExampleRemoteVector_AddRange() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	counters, err := xdpfab.Vector[uint32](ctx, peer, "counters")
	if err != nil {
		log.Fatal(err)
	}
	err = counters.AddRange(ctx, 100, []uint32{5, 0, 7}, nil)
	buckets := make([]uint32, 4)
	fmt.Println(counters.LoadRange(ctx, 99, buckets), buckets, err)
	// Output: <nil> [0 5 0 7] <nil>
}

// Single words of a vector, and a claim to each of several words in one round trip.
func ExampleRemoteVector_At() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	claims, err := xdpfab.Vector[uint64](ctx, peer, "counters")
	if err != nil {
		log.Fatal(err)
	}
	first, _ := claims.At(3).CompareAndSwap(ctx, 0, 77)
	swapped := make([]bool, 3)
	err = claims.CompareAndSwap(ctx, []uint64{2, 3, 4}, []uint64{0, 0, 0}, []uint64{78, 78, 78}, swapped)
	fmt.Println(first, swapped, err)
	// Output: true [true false true] <nil>
}

// A claim: the first client that swaps 0 for a number of its own has the word. It is no
// lock, which others get after its holder's death: package sync has Mutex and Lease.
func ExampleRemote_CompareAndSwap() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	claim, err := xdpfab.Word[uint32](ctx, peer, "counters", 7)
	if err != nil {
		log.Fatal(err)
	}
	first, _ := claim.CompareAndSwap(ctx, 0, 1)
	second, _ := claim.CompareAndSwap(ctx, 0, 2)
	fmt.Println(first, second)
	// Output: true false
}

// A loop that changes a word by a function of its value: one round trip a try.
func ExampleRemote_CompareAndExchange() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	word, err := xdpfab.Word[uint64](ctx, peer, "counters", 8)
	if err != nil {
		log.Fatal(err)
	}
	old, swapped, err := uint64(0), false, error(nil) // a guess
	for !swapped && err == nil {
		var was uint64
		was, swapped, err = word.CompareAndExchange(ctx, old, 3*old+1)
		if !swapped {
			old = was
		}
	}
	n, _ := word.Load(ctx)
	fmt.Println(old, n, err)
	// Output: 0 1 <nil>
}

// Several operations under way at once, without a goroutine for each.
func ExampleRemote_StartAdd() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	var under []*xdpfab.Pending[complex128]
	for i := range uint64(3) {
		word, err := xdpfab.Word[complex128](ctx, peer, "counters", 20+i)
		if err != nil {
			log.Fatal(err)
		}
		under = append(under, word.StartAdd(ctx, complex(float64(i), -1)))
	}
	for _, p := range under {
		fmt.Println(p.Wait(ctx))
	}
	// Output:
	// (0-1i) <nil>
	// (1-1i) <nil>
	// (2-1i) <nil>
}

// Errors say what is known of the operation, and why.
func ExampleOpError() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, _ := client.Dial(ctx, server.Name(0))
	_, err := xdpfab.WordAt[uint64](peer, xdpfab.RemoteRegion{Key: 12345}, 0).Add(ctx, 1)
	fmt.Println(errors.Is(err, xdpfab.ErrNotExecuted), errors.Is(err, xdpfab.ErrNoKey))
	// Output: true true
}
