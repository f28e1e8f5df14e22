// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// moves are the changes of the network that a session over UDP survives. Each leaves a
// way between the two addresses; side is one of the two.
var moves = []struct {
	name string
	move func(w *world, side *testnet.Side, rnd *rand.Rand)
}{
	{"next hops changed", func(w *world, side *testnet.Side, rnd *rand.Rand) {
		w.wire.Readdress(side, net.HardwareAddr{2, 0, 0, 0, byte(rnd.IntN(256)), byte(rnd.IntN(256))})
	}},
	{"next hops changed", func(w *world, side *testnet.Side, _ *rand.Rand) { w.wire.Readdress(side, nil) }},
	{"neighbours forgotten", func(w *world, side *testnet.Side, _ *rand.Rand) {
		testnet.IP(w.t, side, "neigh flush dev "+side.IfName)
	}},
	{"addresses taken away", func(w *world, side *testnet.Side, rnd *rand.Rand) {
		a := side.IP4.String() + "/24 dev " + side.IfName
		testnet.IP(w.t, side, "addr del "+a)
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		testnet.IP(w.t, side, "addr add "+a)
	}},
	{"addresses changed places", func(w *world, side *testnet.Side, rnd *rand.Rand) { // first another one, then the old one again
		a, other := side.IP4.String()+"/24 dev "+side.IfName, "10.77.0.77/24 dev "+side.IfName
		testnet.IP(w.t, side, "addr del "+a)
		testnet.IP(w.t, side, "addr add "+other)
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		testnet.IP(w.t, side, "addr add "+a)
		testnet.IP(w.t, side, "addr del "+other)
		testnet.IP(w.t, side, "addr replace "+a) // if it was removed with the other
	}},
}

// shuffle makes moves at both sides: at random or, if each is set, one of every kind at
// each side.
func shuffle(w *world, rnd *rand.Rand, n int, each bool) {
	sides := []*testnet.Side{w.wire.A, w.wire.B}
	for i := range n {
		m, side := moves[rnd.IntN(len(moves))], sides[rnd.IntN(2)]
		if each {
			m, side = moves[i%len(moves)], sides[i/len(moves)%2]
		}
		m.move(w, side, rnd)
		survived.add(m.name, 1)
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
	}
}

// settled checks a crew whose peer was reachable all the time: nothing failed.
func (c *crew) settled() {
	c.w.t.Helper()
	c.finish(true)
	for i, a := range c.actors {
		for k, p := range a.posts {
			if p.fate != ok {
				c.w.t.Errorf("actor %d: operation %d of %d failed, but the peer was never out of reach for long: %v", i, k, len(a.posts), p.err)
				break
			}
		}
	}
}

// Next hops and addresses change under way, at either side: no operation fails.
func TestMoves(t *testing.T) {
	w := newWorld(t, setting{seed: 10, udp: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	crew := w.hire(plan{actors: 2, depth: 16, limit: 100000, seed: 10, pace: 200 * time.Microsecond}).start()
	callers := w.call(2, 5*time.Millisecond, 10)
	shuffle(w, rand.New(rand.NewPCG(10, 10)), 2*len(moves), true)
	crew.settled()
	callers.finish()
}

// Calls are left early, while the wire has all faults: the outcome of each becomes
// known, and the sum is exact.
func TestCallsLeftEarly(t *testing.T) {
	for _, manual := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		w := newWorld(t, setting{seed: 11, client: xdpfab.DomainAttr{GiveUp: lively, Progress: manual}})
		c := w.call(6, 3*time.Millisecond, 11)
		rnd := rand.New(rand.NewPCG(11, 11))
		for range 4 {
			w.wire.SetBoth(everything)
			w.answers(100)
			partition(w, rnd, 50*time.Millisecond)
		}
		before := survived.count("calls left early: ran")
		if c.finish(); survived.count("calls left early: ran") == before {
			t.Error("no call was left early and ran")
		}
	}
}

// movements are moves in light weather, with calls that are left early.
func movements(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, lively)
	s.udp = true
	w := newWorld(t, s)
	defer burden(t, rnd)()
	c, calls := w.hire(p).start(), w.call(1+rnd.IntN(4), 10*time.Millisecond, rnd.Uint64())
	w.wire.SetBoth(faultwire.Faults{Loss: 0.02, Duplicate: 0.05, Replay: 0.05, Jitter: time.Millisecond})
	shuffle(w, rnd, 6, false)
	w.heal()
	c.settled()
	calls.finish()
}

// deadlines are calls that are left early in any weather, with short partitions.
func deadlines(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, lively)
	w := newWorld(t, s)
	defer burden(t, rnd)()
	c := w.hire(p).start()
	calls := w.call(1+rnd.IntN(8), time.Duration(1+rnd.IntN(50))*time.Millisecond, rnd.Uint64())
	for range 4 {
		w.wire.SetBoth(mixed(rnd))
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		if rnd.IntN(2) == 0 {
			partition(w, rnd, time.Duration(rnd.IntN(300))*time.Millisecond)
		}
	}
	w.heal()
	c.settled()
	calls.finish()
}
