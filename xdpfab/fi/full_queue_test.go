// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A target whose program reads no completions is not silent. Operations that wait for its
// queue, and those behind them, wait as long as the target lives, and are given up after.
func TestFullQueueIsNoSilence(t *testing.T) {
	const places = 4 // in the target's queue
	guest := fi.DomainAttr{Attach: fi.AttachAlways}
	for _, x := range []struct {
		name   string
		client fi.DomainAttr
		guest  bool // the target
	}{
		{"direct", fi.DomainAttr{}, false},
		{"guest as client", guest, false},
		{"guest as target", fi.DomainAttr{}, true},
		{"guests", guest, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, dies := range []bool{false, true} {
				clock, attr := fi.NewClock(x.client)
				f, room := setUp(t, attr, 64), places
				on := f.server
				if x.guest {
					on, room = NarrowGuestOf(t, f.server), places+NarrowEvents
					r, err := on.NewRegion("narrow", 4096)
					if err != nil {
						t.Fatal(err)
					}
					f.region, f.mem = r, r.Bytes()
				}
				fullQueue(t, f, clock, newTarget(t, on, places, f.ep.Name()), room, dies)
			}
		})
	}
}

// fullQueue fills the queue of a target that has room for so many events, and more.
func fullQueue(t *testing.T, f *fixture, clock *fi.Clock, at *target, room int, dies bool) {
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	add := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	n := 0
	post := func() {
		m := fi.Msg{Dest: dest, Key: f.region.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Buf: add, Data: uint64(n)}
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData); err != nil {
			t.Fatal(err)
		}
		n++
	}
	succeed := func(number int) {
		for range number {
			if c := f.take(t); c.Err != nil {
				t.Fatalf("there is room: %+v", c)
			}
		}
	}
	const late = 8 // operations for which there is no room
	for n < room {
		first := n
		for n < min(room, first+32) {
			post()
		}
		succeed(n - first)
	}
	for range late {
		post()
	}
	here := cableOf(f.client)
	answered := func() uint64 { // by the target
		s, err := f.server.Stats()
		if err != nil {
			t.Error(err)
		}
		return s["packets_sent"]
	}
	for range reduced(60, 12) { // 10 give-up times, or 2, in which the target can answer
		sent := answered()
		clock.Forward(10*time.Second, here.Domain)
		testnet.Eventually(t, "an answer", func() bool { return answered() > sent })
	}
	if got, err := f.cq.Read(make([]fi.Completion, 1)); got != 0 || err != nil || f.word(0) != uint64(room) {
		t.Fatalf("%d completions, %v, and the word is %d, want %d, while the queue is full", got, err, f.word(0), room)
	}
	if dies {
		if err := f.server.SetFaults(fi.Faults{Loss: 1}); err != nil {
			t.Fatal(err)
		}
		clock.Forward(2*time.Minute, here.Domain)
		if c := f.take(t); !errors.Is(c.Err, fi.ErrOutcomeUnknown) || !errors.Is(c.Err, fi.ErrPeerSilent) {
			t.Errorf("the target is silent: %+v", c)
		}
		return
	}
	for i := range uint64(n) {
		if c := at.next(t); c.Data != i {
			t.Fatalf("event %d has data %d", i, c.Data)
		}
	}
	succeed(late)
}
