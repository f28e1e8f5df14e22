// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A program can test how it handles an operation of which it cannot know whether it ran:
// here the answer gets lost, and the caller leaves. Once the network is healed, Settle
// returns what Add would have returned.
func ExampleSettle() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	peer, err := client.Dial(context.Background(), server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	hits, err := xdpfab.Word[uint64](context.Background(), peer, "counters", 0)
	if err != nil {
		log.Fatal(err)
	}

	_ = server.SetFaults(xdpfab.Faults{Loss: 1}) // requests arrive, answers do not
	ctx, leave := context.WithCancel(context.Background())
	go leaveAfter(server, ranAt(server), leave)
	n, err := hits.Add(ctx, 1)
	fmt.Println(errors.Is(err, xdpfab.ErrOutcomeUnknown), errors.Is(err, context.Canceled))

	_ = server.SetFaults(xdpfab.Faults{}) // healed
	n, err = xdpfab.Settle(context.Background(), n, err)
	fmt.Println(n, err)
	// Output:
	// true true
	// 1 <nil>
}

// leaveAfter calls leave when a domain has executed more operations than before.
func leaveAfter(d *xdpfab.Domain, before uint64, leave func()) {
	for ranAt(d) == before {
		time.Sleep(time.Millisecond)
	}
	leave()
}

// ranAt returns how many operations of peers a domain has executed.
func ranAt(d *xdpfab.Domain) uint64 {
	stats, _ := d.Stats()
	return stats["ops_executed"]
}

// The raw form of Settle, for completions of package fi too: the result is in bytes.
func ExampleDomain_SetFaults() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	peer, err := client.Dial(context.Background(), server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	hits, err := xdpfab.Word[uint64](context.Background(), peer, "counters", 0)
	if err != nil {
		log.Fatal(err)
	}
	_ = server.SetFaults(xdpfab.Faults{Loss: 1})
	ctx, leave := context.WithCancel(context.Background())
	go leaveAfter(server, ranAt(server), leave)
	_, err = hits.Add(ctx, 1)
	_ = server.SetFaults(xdpfab.Faults{})

	var failure *xdpfab.OpError
	fmt.Println(errors.As(err, &failure))
	ran, was, err := failure.Resolve(context.Background())
	fmt.Println(ran, was, err)
	// Output:
	// true
	// true [0 0 0 0 0 0 0 0] <nil>
}
