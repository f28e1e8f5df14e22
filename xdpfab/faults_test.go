// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A program can test how it handles an operation of which it cannot know whether it ran:
// here the answer gets lost, and the caller leaves.
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

	_ = server.SetFaults(xdpfab.Faults{Loss: 1}) // requests arrive, answers do not
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		for executed := uint64(0); executed == 0; time.Sleep(time.Millisecond) {
			stats, _ := server.Stats()
			executed = stats["ops_executed"]
		}
		leave()
	}()
	_, err = hits.Add(ctx, 1)
	fmt.Println(errors.Is(err, xdpfab.ErrOutcomeUnknown), errors.Is(err, context.Canceled))

	_ = server.SetFaults(xdpfab.Faults{}) // healed
	var failure *xdpfab.OpError
	errors.As(err, &failure)
	ran, was, err := failure.Resolve(context.Background())
	fmt.Println(ran, was, err)
	// Output:
	// true true
	// true [0 0 0 0 0 0 0 0] <nil>
}

// Operations run once, whatever the faults are, and a delay slows down every round trip.
func TestFaults(t *testing.T) {
	directModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		word := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
		want := uint64(0)
		for _, faults := range []xdpfab.Faults{
			{Loss: 0.3}, {Duplicate: 0.5}, {Reorder: 0.5}, {Corrupt: 0.3},
			{Delay: 20 * time.Millisecond}, {Loss: 0.2, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.2, Delay: time.Millisecond},
		} {
			if xdpfab.OverSockets {
				faults.Delay = 0 // which they cannot do
			}
			if err := errors.Join(f.client.SetFaults(faults), f.server.SetFaults(faults)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for range 10 {
				want++
				if got, err := word.Add(ctx(t), 1); err != nil || got != want {
					t.Fatalf("%+v: %d, %v, want %d", faults, got, err, want)
				}
			}
			if took := time.Since(start); took < 20*faults.Delay {
				t.Errorf("%+v: 10 round trips took %v", faults, took)
			}
		}
	})
}

func TestFaultsRefused(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	for _, bad := range []xdpfab.Faults{{Loss: -0.1}, {Duplicate: 1.1}, {Reorder: math.NaN()}, {Corrupt: math.Inf(1)}, {Delay: -1}} {
		if err := f.client.SetFaults(bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
