// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sim

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// leave takes the host's end away from a guest, and returns what the next host needs, as
// text. The engines are paused, and have exported their sessions.
func (g *guest) leave(t *testing.T) (ring, in []byte) {
	t.Helper()
	arrivals := g.in.Export()
	hosts := g.hosts.Export()
	for _, e := range g.n.engs {
		e.RemoveHostRing(g.hosts)
	}
	ring, err := json.Marshal(&hosts)
	if err == nil {
		in, err = json.Marshal(&arrivals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ring, in
}

// join gives a guest the host's end of another process, before the engines import
// sessions.
func (g *guest) join(t *testing.T, ring, in []byte) {
	t.Helper()
	var arrivals share.ArrivalsState
	var hosts share.HostRingState
	if err := json.Unmarshal(ring, &hosts); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(in, &arrivals); err != nil {
		t.Fatal(err)
	}
	g.host()
	g.in.Restore(&arrivals)
	g.hosts.Restore(&hosts)
	g.hosts.Unhold()
	g.attendTo()
}

// Processes take over the host of a guest in the middle of traffic through a bad
// network. Each operation on the guest's memory runs once, the guest is handed nothing
// twice, and no initiator notices anything. Between takeovers the guest dies, too: then
// what it had been handed ran at most once, and what it had not never did.
func TestGuestTakeover(t *testing.T) {
	const total, every = 4000, 300 * microsecond
	for _, dies := range []bool{false, true} {
		w := lab(plan{nodes: 2, delay: 20 * microsecond, rates: rates{loss: 0.02, duplicate: 0.05, replay: 0.02},
			attends: 1 << arrayRegion})
		f := newFlow(t, w, 0, 1, wire.VerbFetch, 1, 64, total)
		target, moves := w.nodes[1], 0
		var move func()
		move = func() {
			if f.left == 0 {
				return
			}
			if moves++; dies && moves%4 == 0 {
				w.guestDeathOf(target, 50*microsecond)
			} else if target.guest != nil {
				target.takeOver(t)
			}
			w.at(w.now+every, move)
		}
		w.at(w.now+every, move)
		f.finish(t)
		sum := int(binary.LittleEndian.Uint64(target.regions[arrayRegion].bytes))
		done, unknown := f.fates[engine.Success], f.fates[engine.Unknown]
		if sum < done || sum > done+unknown || !dies && done != total || dies && unknown == 0 || moves < 5 {
			t.Errorf("dies: %t: sum %d, fates %v of %d; %d takeovers and deaths, want at least 5", dies, sum, f.fates, total, moves)
		}
	}
}

// A guest that stops stops its peers for as long, and no longer; what the host executes
// for others goes on.
func TestGuestStops(t *testing.T) {
	w := lab(plan{nodes: 3, delay: 20 * microsecond, attends: 1 << arrayRegion, leaps: true})
	target := w.nodes[2]
	stopped := newFlow(t, w, 0, 2, wire.VerbFetch, 1, 64, 200)
	other := newFlow(t, w, 1, 2, wire.VerbFetch, 1, 64, 200)
	other.key = target.regions[sumRegion].key()
	target.guest.coming = true // it does not look
	stopped.fill()
	other.finish(t)
	w.until(w.now+minute, func() bool { return stopped.outstanding == 0 || w.failure != nil })
	if w.failure != nil || len(stopped.doneAt) > 0 || other.fates[engine.Success] != 200 {
		t.Fatalf("%d operations completed in a guest that is stopped, %v of others; %v", len(stopped.doneAt), other.fates, w.failure)
	}
	target.guest.coming = false
	target.guest.look()
	stopped.finish(t)
	if stopped.fates[engine.Success] != 200 {
		t.Errorf("fates %v after the stop", stopped.fates)
	}
}
