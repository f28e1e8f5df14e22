// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Work that counts on a word of another node, such as a lock, ends with the word's
// memory.
func ExampleRemote_Guard() {
	net, err := xdpfab.NewNetwork(2)
	if err != nil {
		log.Fatal(err)
	}
	defer net.Close()
	ctx := context.Background()

	if _, err := net.Node(1).Serve("locks", 4096); err != nil {
		log.Fatal(err)
	}
	peer, err := net.Node(0).Dial(ctx, net.Node(1).Name(0))
	if err != nil {
		log.Fatal(err)
	}
	lock, err := xdpfab.Word[uint64](ctx, peer, "locks", 0)
	if err != nil {
		log.Fatal(err)
	}
	guarded, err := lock.Guard(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guarded.Err())

	server, err := net.Restart(1) // the memory of the lock is lost
	if err != nil {
		log.Fatal(err)
	}
	if _, err := server.Serve("locks", 4096); err != nil {
		log.Fatal(err)
	}
	<-guarded.Done()
	fmt.Println(errors.Is(context.Cause(guarded), xdpfab.ErrPeerRestarted))
	// Output:
	// <nil>
	// true
}
