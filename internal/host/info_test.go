// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"testing"

	"github.com/xdpfab/xdpfab/mr"
)

// What a poller applies to a region while it is being withdrawn counts, and the sum never
// falls.
func TestAppliedWhileWithdrawn(t *testing.T) {
	table := mr.NewTable()
	m, err := mr.Adopt(make([]byte, 4096))
	if err != nil {
		t.Fatal(err)
	}
	region, err := table.Register(m, mr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &guestRegion{region: region, memory: m, paid: func() {}}
	g := &Guest{regions: map[uint64]*guestRegion{region.Key(): r}}
	reads := func() uint64 { i, _ := g.describe(); return i.Applied.Fetching }
	region.AddTally(mr.Tally{Fetching: 1})
	poller, closed := table.NewReader(), make(chan error)
	poller.Enter()
	g.Mu.Lock()
	g.unlist(region.Key(), r)
	g.Mu.Unlock()
	go func() { closed <- g.closeRegion(r) }()
	if n := reads(); n != 1 {
		t.Errorf("while the region is withdrawn: %d reads, want 1", n)
	}
	region.AddTally(mr.Tally{Fetching: 1})
	poller.Exit()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if n := reads(); n != 2 {
		t.Errorf("of a region that was withdrawn: %d reads, want 2", n)
	}
}
