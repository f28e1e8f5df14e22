// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// nodes returns two domains, the second of which serves a region "counters". On real
// interfaces they are made with Fabric.OpenDomain, on two machines.
func nodes() (client, server *fi.Domain) {
	client, server, err := fi.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := server.NewRegion("counters", 4096); err != nil {
		log.Fatal(err)
	}
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, ep.Enable()); err != nil {
		log.Fatal(err)
	}
	return client, server
}

// The objects of libfabric: many operations in flight, completions from a queue.
func ExampleEndpoint_FetchAtomic() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	av, _ := client.NewAddressVector()
	cq, _ := client.NewCompletionQueue(fi.CQAttr{})
	ep, err := client.NewEndpoint(fi.EndpointAttr{Number: 1})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, err := av.Insert(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := ep.Lookup(ctx, dest, "counters")
	if err != nil {
		log.Fatal(err)
	}

	operand := xdpfab.Bytes[uint32](2, 3)
	result := make([]byte, 8)
	add := fi.Msg{
		Buf: operand, Result: result,
		Dest: dest, Key: region.Key, Offset: region.Base,
		Datatype: atomic.Uint32, Op: atomic.Sum,
	}
	for range 3 {
		if err := ep.FetchAtomic(&add, 0); err != nil {
			log.Fatal(err)
		}
		if err := cq.Wait(ctx, 1); err != nil {
			log.Fatal(err)
		}
		var done [1]fi.Completion
		n, err := cq.Read(done[:])
		fmt.Println(n, err, xdpfab.Values[uint32](result))
	}
	// Output:
	// 1 <nil> [0 0]
	// 1 <nil> [2 3]
	// 1 <nil> [4 6]
}

// Discovery: ask for what the program needs, and open the best that there is. Here the
// open end of a Pipe stands for the interfaces of the machine.
func ExampleGetInfo() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	hints := &fi.Info{
		Caps:     fi.CapAtomic,
		Transmit: fi.TransmitInfo{InjectSize: 16, MsgOrder: fi.OrderAtomicWAW},
		Domain:   fi.DomainInfo{Instance: client},
	}
	infos, err := fi.GetInfo(ctx, hints)
	if err != nil {
		log.Fatal(err)
	}
	best := &infos[0] // Fabric.OpenInfo opens an interface as it says
	fmt.Println(best.Domain.Name, best.AddrFormat, best.Endpoint.Type, best.Endpoint.AtomicOrder.WAW)

	hints.Caps |= 1 << 6 // FI_COLLECTIVE
	_, err = fi.GetInfo(ctx, hints)
	fmt.Println(errors.Is(err, fi.ErrNoInfo))
	// Output:
	// pipe ethernet rdm unlimited
	// true
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
	ep, _ := client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
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

// A counter in place of completions: the program waits until as many operations have
// ended as it has posted.
func ExampleCounter_Wait() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	av, _ := client.NewAddressVector()
	ended, _ := client.NewCounter()
	ep, err := client.NewEndpoint(fi.EndpointAttr{Number: 1})
	if err := errors.Join(err, ep.Bind(av, 0), ep.Bind(ended, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, err := av.Insert(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := ep.Lookup(ctx, dest, "counters")
	if err != nil {
		log.Fatal(err)
	}
	const posted = 100
	for i := range uint64(posted) {
		add := fi.Msg{Buf: xdpfab.Bytes[uint64](1), Dest: dest, Key: region.Key, Offset: 8 * i, Datatype: atomic.Uint64,
			Op: atomic.Sum}
		if err := ep.Atomic(&add, 0); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(ended.Wait(ctx, posted), ended.Read(), ended.ReadErr())
	// Output:
	// <nil> 100 0
}

// What an operation on a datatype takes, and against what it is atomic.
func ExampleDomain_QueryAtomic() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	attr, err := client.QueryAtomic(atomic.Fetch, atomic.Uint64, atomic.Sum, 0)
	fmt.Println(attr.Size, attr.Align, attr.CoherentAlign, err)
	_, err = client.QueryAtomic(atomic.Base, atomic.Uint64, atomic.Cswap, 0)
	fmt.Println(err)
	// Output:
	// 8 8 8 <nil>
	// xdpfab: base cswap on uint64: the operation takes a comparand: want CompareAtomic
}
