// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// On a bad wire, a session runs each operation once and in order, also while it becomes
// the program's, and when the poller has to execute every other frame of it.
func TestResidentFaults(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	w := faultwire.New(t, faultwire.Options{Seed: 1})
	server := serveOn(t, w.B)
	if _, err := server.NewResidentRegion("hot", 4096); err != nil {
		t.Fatal(err)
	}
	client := openOn(t, w.A, fi.DomainAttr{})
	w.SetBoth(faultwire.Faults{Loss: 0.05, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.02, Replay: 0.02})
	p, err := client.Dial(ctx(t), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	hot, err := xdpfab.Vector[uint64](ctx(t), p, "hot")
	other, err2 := xdpfab.Vector[uint64](ctx(t), p, "r")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	const each = 700 // some ten frames
	at, ones, sums := make([]uint64, each), slices.Repeat([]uint64{1}, each), make([]uint64, each)
	for round := range uint64(reduced(6, 3)) {
		for _, v := range []xdpfab.RemoteVector[uint64]{other, hot, hot} {
			if err := v.Add(ctx(t), at, ones, sums); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			for i, sum := range sums {
				if sum != sums[0]+uint64(i) {
					t.Fatalf("round %d: operation %d fetched %d, the first one %d", round, i, sum, sums[0])
				}
			}
		}
		if sums[each-1] != 2*each*(round+1) {
			t.Fatalf("round %d: the word is %d, want %d", round, sums[each-1], 2*each*(round+1))
		}
	}
	s := w.Stats()
	t.Logf("%d frames were lost, %d duplicated, %d reordered", s.Total(faultwire.Lost), s.Total(faultwire.Duplicated), s.Total(faultwire.Reordered))
	w.SetBoth(faultwire.Faults{})
	testnet.Eventually(t, "the program to execute", func() bool {
		if err := hot.Add(ctx(t), at[:1], ones[:1], nil); err != nil {
			t.Fatal(err)
		}
		return stat(t, server, "resident_requests_executed") > 0
	})
}
