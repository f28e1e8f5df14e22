// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Many additions are begun, and nobody waits for one of them. Flush waits for all.
func ExamplePeer_Flush() {
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
	for range 100 {
		hits.StartAdd(ctx, 1)
	}
	if err := peer.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(hits.Load(ctx))
	// Output: 100 <nil>
}

// Quiet waits for the operations on all peers, here before the domain closes.
func ExampleDomain_Quiet() {
	client, server := nodes()
	defer server.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	for i := range uint64(3) {
		word, err := xdpfab.Word[uint64](ctx, peer, "counters", i)
		if err != nil {
			log.Fatal(err)
		}
		word.StartAdd(ctx, i)
	}
	fmt.Println(client.Quiet(ctx), client.CloseAll())
	// Output: <nil> <nil>
}
