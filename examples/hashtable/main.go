// SPDX-License-Identifier: Apache-2.0

// Command hashtable stores keys and values on another node, which runs no code for it. A
// slot is one element of 128 bits, so that a key and its value change together.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var keys = flag.Uint64("n", 1000, "number of keys to put and get")

func main() { start.Main(start.Region("table", 16*slots), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	// The table is a cache. If its node restarts, it is empty, which is no error.
	v, err := xdpfab.Vector[xdpfab.U128](ctx, peer, "table", xdpfab.AutoRebind())
	if err != nil {
		return err
	}
	t, found := table{v}, 0
	for key := uint64(1); key <= *keys && err == nil; key++ {
		err = t.put(ctx, key, key*key)
	}
	for key := uint64(1); key <= *keys && err == nil; key++ {
		var value uint64
		if value, err = t.get(ctx, key); value == key*key {
			found++
		}
	}
	fmt.Printf("put %d keys, found %d\n", *keys, found)
	return err
}
