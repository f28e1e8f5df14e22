// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Bytes of a peer's region are read and written at any offset.
func ExamplePeer_Write() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := peer.Lookup(ctx, "counters")
	if err != nil {
		log.Fatal(err)
	}
	text := []byte("written by a peer")
	back := make([]byte, len(text))
	if err := errors.Join(peer.Write(ctx, region, 100, text), peer.Read(ctx, region, 100, back)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", back)

	section := io.NewSectionReader(xdpfab.BytesAt(ctx, peer, region), 108, 2)
	by, err := io.ReadAll(section)
	fmt.Printf("%s %v\n", by, err)
	// Output:
	// written by a peer
	// by <nil>
}

// Reads and writes are posted like atomics, and in one order with them.
func ExampleEndpoint_Write() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	log1, err := server.NewRegion("log", 1<<16)
	if err != nil {
		log.Fatal(err)
	}
	av, _ := client.NewAddressVector()
	cq, _ := client.NewCompletionQueue(fi.CQAttr{})
	ep, _ := client.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, fi.BindTransmit), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, _ := av.Insert(ctx, server.Name(0))

	// An entry of a log, and then the number of entries: whoever sees the number sees the
	// entry.
	entry := fi.RMA{Dest: dest, Key: log1.Key(), Offset: 8, Pieces: [][]byte{[]byte("first "), []byte("entry")}, Context: "entry"}
	one := fi.Msg{Dest: dest, Key: log1.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Context: "number"}
	if err := errors.Join(ep.Write(&entry, fi.FlagMore), ep.Atomic(&one, 0)); err != nil {
		log.Fatal(err)
	}
	var done [2]fi.Completion
	for n := 0; n < len(done); {
		if err := cq.Wait(ctx, 1); err != nil {
			log.Fatal(err)
		}
		k, err := cq.Read(done[n:])
		if err != nil {
			log.Fatal(err)
		}
		n += k
	}
	for _, c := range done {
		fmt.Println(c.Context, c.Flags, c.Bytes)
	}
	fmt.Printf("%d: %s\n", log1.Bytes()[0], log1.Bytes()[8:19])
	// Output:
	// entry write|rma 11
	// number atomic|write 8
	// 1: first entry
}
