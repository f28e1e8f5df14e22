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

// The node with the memory learns of each operation, by a number that comes with it.
func ExampleEndpoint_Atomic_remoteCQData() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	counters, err := server.NewRegion("orders", 64)
	if err != nil {
		log.Fatal(err)
	}
	arrivals, _ := server.NewCompletionQueue(fi.CQAttr{})
	target, _ := server.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err := errors.Join(target.Bind(arrivals, fi.BindRecv), target.Enable()); err != nil {
		log.Fatal(err)
	}

	av, _ := client.NewAddressVector()
	cq, _ := client.NewCompletionQueue(fi.CQAttr{})
	ep, _ := client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, fi.BindTransmit), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, _ := av.Insert(ctx, server.Name(7))
	five := []byte{5, 0, 0, 0, 0, 0, 0, 0}
	m := fi.Msg{Dest: dest, Key: counters.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Buf: five, Data: 42}
	if err := ep.Atomic(&m, fi.FlagRemoteCQData); err != nil {
		log.Fatal(err)
	}

	if err := arrivals.Wait(ctx, 1); err != nil {
		log.Fatal(err)
	}
	var c [1]fi.Completion
	if _, err := arrivals.Read(c[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("order %d: %v, %d bytes, the counter is %d\n", c[0].Data, c[0].Flags, c[0].Bytes, binary.LittleEndian.Uint64(counters.Bytes()))
	// Output:
	// order 42: atomic|remote_write|remote_cq_data, 8 bytes, the counter is 5
}
