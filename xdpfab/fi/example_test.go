// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Posts and completions: four fetch-adds in flight on one word of another node, and a
// queue that has one completion for each. Fabric.OpenDomain opens an interface in place
// of the Pipe.
func Example() {
	client, server, err := fi.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	defer server.CloseAll()
	defer client.CloseAll()
	if _, err := server.NewRegion("counters", 4096); err != nil {
		log.Fatal(err)
	}
	target, err := server.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		log.Fatal(err)
	}
	if err := target.Enable(); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	peers, err := client.NewAddressVector()
	if err != nil {
		log.Fatal(err)
	}
	done, err := client.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		log.Fatal(err)
	}
	ep, err := client.NewEndpoint(fi.EndpointAttr{Number: 1})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(ep.Bind(peers, 0), ep.Bind(done, 0), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, err := peers.Insert(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := ep.Lookup(ctx, dest, "counters")
	if err != nil {
		log.Fatal(err)
	}

	one := binary.LittleEndian.AppendUint64(nil, 1)
	var before [4][8]byte
	for i := range before {
		m := fi.Msg{Buf: one, Result: before[i][:], Dest: dest, Key: region.Key, Offset: region.Base,
			Datatype: atomic.Uint64, Op: atomic.Sum, Context: i}
		if err := ep.FetchAtomic(&m, 0); err != nil {
			log.Fatal(err)
		}
	}
	for read := 0; read < len(before); {
		if err := done.Wait(ctx, 1); err != nil {
			log.Fatal(err)
		}
		var some [4]fi.Completion
		n, err := done.Read(some[:])
		if err != nil {
			log.Fatal(err) // done.ReadErr says what failed, and whether it ran
		}
		for _, c := range some[:n] {
			fmt.Println(c.Context, binary.LittleEndian.Uint64(before[c.Context.(int)][:]))
		}
		read += n
	}
	// Output:
	// 0 0
	// 1 1
	// 2 2
	// 3 3
}
