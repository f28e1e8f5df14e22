// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A test of what a program does when another node restarts: the process dies without a
// word, and comes back with empty memory.
func ExampleNetwork_Restart() {
	net, err := xdpfab.NewNetwork(3)
	if err != nil {
		log.Fatal(err)
	}
	defer net.Close()
	ctx := context.Background()

	begin := func(server *xdpfab.Domain) { // what the server's program does when it begins
		if _, err := server.Serve("counters", 4096); err != nil {
			log.Fatal(err)
		}
	}
	begin(net.Node(2))
	peer, err := net.Node(0).Dial(ctx, net.Node(2).Name(0))
	if err != nil {
		log.Fatal(err)
	}
	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hits.Add(ctx, 41))

	server, err := net.Restart(2)
	if err != nil {
		log.Fatal(err)
	}
	begin(server)
	_, err = hits.Add(ctx, 1)
	fmt.Println(errors.Is(err, xdpfab.ErrPeerRestarted))
	if err := hits.Rebind(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(hits.Add(ctx, 1))
	// Output:
	// 41 <nil>
	// true
	// 1 <nil>
}
