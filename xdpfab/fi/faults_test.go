// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Operations run once, whatever the faults are, and a delay slows down every round trip.
func TestFaults(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		word := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		want := uint64(0)
		for _, faults := range []fi.Faults{
			{Loss: 0.3}, {Duplicate: 0.5}, {Reorder: 0.5}, {Corrupt: 0.3},
			{Delay: 20 * time.Millisecond}, {Loss: 0.2, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.2, Delay: time.Millisecond},
		} {
			if fi.OverSockets {
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
	f := setUp(t, fi.DomainAttr{}, 64)
	for _, bad := range []fi.Faults{{Loss: -0.1}, {Duplicate: 1.1}, {Reorder: math.NaN()}, {Corrupt: math.Inf(1)}, {Delay: -1}} {
		if err := f.client.SetFaults(bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
