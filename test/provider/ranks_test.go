// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"fmt"
	"testing"
	"time"
)

// Many programs of two nodes exchange messages, all with all, and add to the memory of
// all: nothing is lost.
func TestRanks(t *testing.T) {
	ranks := 12
	if long() { // with 64 the queue of each node has no room for more sessions
		ranks = 48
	}
	w := newWorld(t)
	path := w.program("ranks")
	w.params = []string{"FI_XDPFAB_YIELD=1"} // there are more programs than processors
	var all []*running
	for i := range ranks {
		all = append(all, w.start(i%2, path, fmt.Sprint(i), fmt.Sprint(ranks), w.net.A.IP4.String(), w.net.B.IP4.String()))
	}
	for _, p := range all {
		if got := w.line(p); got != "ready" {
			t.Fatal(got)
		}
	}
	for _, p := range all {
		fmt.Fprintln(p.in)
	}
	var longest time.Duration
	for _, p := range all {
		var us int
		if _, err := fmt.Sscan(w.line(p), &us); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Duration(us)*time.Microsecond)
	}
	t.Logf("%d ranks: the first exchange took %v", ranks, longest)
	for _, p := range all {
		if got := w.line(p); got != "added" {
			t.Fatal(got)
		}
	}
	for _, p := range all {
		p.in.Close()
	}
	for i, p := range all {
		if got := w.end(p); got != fmt.Sprint(ranks) {
			t.Errorf("rank %d has %q, want %d", i, got, ranks)
		}
	}
}
