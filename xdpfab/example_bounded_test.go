// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A quota of 5 that many nodes share. No request needs a loop, and none is counted that
// was refused.
func ExampleAddAtMost() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	used, err := xdpfab.Word[uint32](ctx, peer, "counters", 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, units := range []uint32{3, 3, 2} {
		granted, err := xdpfab.AddAtMost(ctx, used, units, 5)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(units, granted)
	}
	_, err = xdpfab.SubAtLeast(ctx, used, 3, 0) // gives back
	now, err2 := used.Load(ctx)
	fmt.Println(now, err, err2)
	// Output:
	// 3 true
	// 3 false
	// 2 true
	// 2 <nil> <nil>
}

// A word holds a count of 12 bits beside flags.
func ExampleAddField() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	slot, err := xdpfab.Word[uint64](ctx, peer, "counters", 1)
	if err != nil {
		log.Fatal(err)
	}
	taken, err := xdpfab.SetBit(ctx, slot, 63)
	if err != nil {
		log.Fatal(err)
	}
	before, err := xdpfab.AddField(ctx, slot, 0, 12, ^uint64(0)) // subtracts 1, and wraps around
	if err != nil {
		log.Fatal(err)
	}
	now, err := slot.Load(ctx)
	fmt.Printf("%t %d %#x %v\n", taken, before, now, err)
	// Output: false 0 0x8000000000000fff <nil>
}
