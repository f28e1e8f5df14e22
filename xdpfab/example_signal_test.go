// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Data with a doorbell: the client writes a record, and with it adds 1 to the word before
// it. The owner of the memory sleeps until the word is 1, and finds the record whole. It
// may read the bytes until it tells the client, in a way of the program's own, that they
// may be written again.
func ExamplePeer_WriteSignal() {
	ctx := context.Background()
	net, err := xdpfab.NewNetwork(2, xdpfab.DomainAttr{})
	if err != nil {
		log.Fatal(err)
	}
	defer net.Close()
	owner, client := net.Node(0), net.Node(1)
	inbox, err := owner.Serve("inbox", 4096)
	if err != nil {
		log.Fatal(err)
	}

	peer, err := client.Dial(ctx, owner.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	r, err := peer.Lookup(ctx, "inbox")
	if err != nil {
		log.Fatal(err)
	}
	bell := xdpfab.Signal{Region: r, Index: 0, Op: atomic.Sum, Value: 1}
	if err := peer.WriteSignal(ctx, r, 8, []byte("a record"), bell); err != nil {
		log.Fatal(err)
	}

	if _, err := xdpfab.Wait(ctx, owner, inbox.Region, 0, xdpfab.AtLeast[uint64](1)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", inbox.Region.Bytes()[8:16])
	// Output: a record
}
