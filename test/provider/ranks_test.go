// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// Many programs exchange messages, all with all, and add to the memory of all: nothing is
// lost.
func TestRanks(t *testing.T) {
	t.Run("12 on two nodes", func(t *testing.T) { exchange(t, newWorld(t), 12, 2) })
	if !long() {
		return
	}
	t.Run("64 on one node", func(t *testing.T) { exchange(t, newWorld(t), 64, 1) })
	t.Run("64 on two nodes", func(t *testing.T) { exchange(t, newWorld(t), 64, 2) })
}

// exchange has so many ranks on the first nodes do so.
func exchange(t *testing.T, w *world, ranks, nodes int) {
	all := w.ranks(ranks, nodes)
	var longest time.Duration
	for _, p := range all {
		var us int
		if _, err := fmt.Sscan(w.line(p), &us); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Duration(us)*time.Microsecond)
	}
	t.Logf("%d ranks on %d nodes: the first exchange took %v", ranks, nodes, longest)
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

// ranks starts ranks on the first nodes in turn, and lets them begin when all are ready.
func (w *world) ranks(n, nodes int) (all []*running) {
	w.t.Helper()
	path := w.program("ranks")
	w.params = []string{"FI_XDPFAB_YIELD=1"} // there are more programs than processors
	ips := []string{w.net.A.IP4.String(), w.net.B.IP4.String()}[:nodes]
	for i := range n {
		all = append(all, w.start(i%nodes, path, append([]string{fmt.Sprint(i), fmt.Sprint(n)}, ips...)...))
	}
	for _, p := range all {
		if got := w.line(p); got != "ready" {
			w.t.Fatal(got)
		}
	}
	for _, p := range all {
		fmt.Fprintln(p.in)
	}
	return all
}

// A daemon that has no room for another session says so to the program, and names the
// option that bounds them.
func TestRanksWithoutRoom(t *testing.T) {
	w := newWorld(t)
	w.takeOver(0, "--sessions", "16")
	all := w.ranks(6, 1) // which would take 6 x 5 sessions, and as many at their other ends
	said := make(chan string, len(all))
	for _, p := range all {
		go func() {
			_, _ = io.ReadAll(p.out)
			_ = p.Wait()
			said <- p.said.String()
		}()
	}
	if got := <-said; !strings.Contains(got, "no room for another session (--sessions): it never ran") {
		t.Errorf("said %q", got)
	}
}

// A program may have more peers on a node than its daemon gives numbers to in one call.
// Each operation ends, those to peers that are not there with an error.
func TestManyPeers(t *testing.T) {
	w := newWorld(t)
	if got := w.end(w.start(0, w.program("ends"), "strangers", w.net.B.IP4.String(), w.key(1))); got != "ok" {
		t.Errorf("said %q", got)
	}
}
