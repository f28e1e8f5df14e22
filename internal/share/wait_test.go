// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// door is a word at the target, under key 1, which guests wait to be 0.
type door struct {
	*world
	word []byte
}

func newDoor(t testing.TB) *door {
	w := newWorld(t)
	d := &door{w, w.region(1, 64)[:8]}
	d.shut(99)
	return d
}

func (d *door) shut(v uint64) { binary.LittleEndian.PutUint64(d.word, v) }

// open changes the word to 0, as its owner does.
func (d *door) open() {
	d.shut(0)
	for _, r := range d.table.All() {
		r.Changed()
	}
}

func (d *door) holder() uint64 { return binary.LittleEndian.Uint64(d.word) }

// enter has a guest wait until the word is 0, and then set it to id.
func (d *door) enter(g *guest, id uint64) *outcome {
	return d.post(g.Engine, g.ring, func(s *engine.Submission) {
		s.Peer, s.Key, s.Offset, s.Count = g.peer.ID(), 1, 0, 1
		s.Verb, s.Opcode, s.Datatype = wire.VerbWait, uint8(atomic.Cswap), uint8(atomic.Uint64)
		s.SetOperands(binary.LittleEndian.AppendUint64(nil, id), make([]byte, 8))
		s.SetLimit(0)
	})
}

// waits steps until so many operations wait at the target, or have ended there and the
// host has still to be told.
func (d *door) waits(n int) {
	d.t.Helper()
	d.until("operations wait", func() bool { return d.exec.Usage().Waiting == n })
}

// ends steps until an operation has ended, and compares its end.
func (d *door) ends(o *outcome, outcome engine.Outcome, why session.Reason) {
	d.t.Helper()
	d.until("it ends", func() bool { return o.n > 0 })
	if o.n != 1 || o.last.Outcome != outcome || o.last.Reason != why {
		d.t.Errorf("it ended %d times, with %v and %v: want once, %v and %v", o.n, o.last.Outcome, o.last.Reason, outcome, why)
	}
}

// Operations of guests wait at the target until their turn comes, or their guest recalls
// them; then nothing of them is left anywhere.
func TestGuestsWait(t *testing.T) {
	d := newDoor(t)
	sizes := Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals}
	a, b := d.guest(sizes), d.guest(sizes)
	first := d.enter(a, 1)
	d.waits(1)
	second, third := d.enter(b, 2), d.enter(a, 3)
	d.waits(3)
	if !a.peer.Recall(third) || a.peer.Recall(&outcome{}) {
		t.Error("the guest cannot recall its operation, or recalls what is none")
	}
	d.ends(third, engine.NotExecuted, session.Cancelled)
	for i, o := range []*outcome{first, second} {
		d.open()
		d.ends(o, engine.Success, session.Alive)
		if d.holder() != uint64(i+1) || binary.LittleEndian.Uint64(o.data) != 0 {
			t.Errorf("%d is inside, and found %x: want %d, and 0", d.holder(), o.data, i+1)
		}
	}
	d.waits(0)
	for _, g := range d.guests {
		if r := g.hostRing; r.waits != 0 || len(r.free) != len(r.ops) || g.broken != nil {
			t.Errorf("%d operations wait, %d of %d are free; %v", r.waits, len(r.free), len(r.ops), g.broken)
		}
	}
}

// One that is recalled before the host has it, or before the target has its request, does
// not wait there; a recall that comes twice, or late, does nothing.
func TestGuestRecallsEarlyAndLate(t *testing.T) {
	d := newDoor(t)
	g := d.guest(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	d.enter(g, 1)
	d.waits(1)
	for _, steps := range []int{0, 1, 2, 3, 5, 8} {
		o := d.enter(g, 7)
		for range steps {
			d.step()
		}
		g.peer.Recall(o)
		g.peer.Recall(o)
		d.ends(o, engine.NotExecuted, session.Cancelled)
		g.guestRing.Leave(1) // its tag, which nothing has by now
		d.waits(1)
	}
	d.cut = true
	o := d.enter(g, 8)
	for range 20 {
		d.step()
	}
	g.peer.Recall(o)
	for range 20 {
		d.step()
	}
	if o.n != 0 {
		t.Errorf("the target is silent, but it has ended: %+v", o.last)
	}
	d.cut = false
	d.ends(o, engine.NotExecuted, session.Cancelled)
}

// A guest has room for 64 operations that wait, in all its sessions together, and takes
// none of the room of another.
func TestGuestsWaitingRoom(t *testing.T) {
	d := newDoor(t)
	sizes := Sizes{Entries: 256, Arena: MinArena, Arrivals: MinArrivals}
	d.flights = 256
	greedy, other := d.guest(sizes), d.guest(sizes)
	first := greedy.peer
	var all []*outcome
	var err error
	for i := range mostWaits + 3 {
		if i == mostWaits {
			greedy.ring = d.world.ring(greedy.Engine) // the first one is full, and the session
			if greedy.peer, err = greedy.NewPeer(link, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, d.enter(greedy, uint64(100+i)))
	}
	for _, o := range all[mostWaits:] {
		d.ends(o, engine.NotExecuted, session.Crowded)
	}
	d.waits(mostWaits)
	if n := greedy.hostRing.Counts.Refused; n != 0 {
		t.Errorf("%d entries count as none", n)
	}
	d.enter(other, 7)
	d.waits(mostWaits + 1)
	first.Recall(all[0])
	d.ends(all[0], engine.NotExecuted, session.Cancelled)
	d.enter(greedy, 8)
	d.waits(mostWaits + 1)
}

// In a small ring there is always room for the operations that others wait for.
func TestGuestsWaitingRoomInSmallRing(t *testing.T) {
	d := newDoor(t)
	g := d.guest(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	for i := range MinEntries / 2 {
		d.enter(g, uint64(100+i))
	}
	d.waits(MinEntries / 2)
	for i := range MinEntries {
		d.ends(d.enter(g, uint64(200+i)), engine.NotExecuted, session.Crowded)
	}
	d.waits(MinEntries / 2)
}

// A guest that dies leaves its place to those behind it.
func TestGuestDiesWaiting(t *testing.T) {
	d := newDoor(t)
	sizes := Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals}
	dead, other := d.guest(sizes), d.guest(sizes)
	d.enter(dead, 1)
	d.waits(1)
	next := d.enter(other, 2)
	d.waits(2)
	dead.hostRing.Close()
	d.guests = d.guests[1:]
	d.waits(1)
	d.open()
	d.ends(next, engine.Success, session.Alive)
	if d.holder() != 2 {
		t.Errorf("%d is inside, want 2", d.holder())
	}
}

// A host that another one takes the place of ends what waits, for certain: nothing is
// under way then. What the target does not answer for is unknown.
func TestHoldEndsWaits(t *testing.T) {
	for _, silent := range []bool{false, true} {
		d := newDoor(t)
		g := d.guest(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
		o := d.enter(g, 1)
		d.waits(1)
		d.cut = silent
		g.hostRing.Hold()
		g.hostRing.Hold()
		late := d.enter(g, 2)
		if silent {
			for range 20 {
				d.step()
			}
			if g.hostRing.Drained() {
				t.Error("it waits no more, though the target has said nothing")
			}
			g.hostRing.Export()
			d.ends(o, engine.Unknown, session.HostLost)
			continue
		}
		d.until("drained", g.hostRing.Drained)
		d.ends(o, engine.NotExecuted, session.HostLost)
		d.waits(0)
		if late.n != 0 {
			t.Errorf("what came while the ring was held has ended: %+v", late.last)
		}
		g.hostRing.Unhold() // the takeover has failed
		d.waits(1)
		g.peer.Recall(late)
		d.ends(late, engine.NotExecuted, session.Cancelled)
		s := g.hostRing.Export()
		if len(s.Open)+len(s.Aside)+len(s.Watches) > 0 {
			t.Errorf("%+v is left to the next host", s)
		}
	}
}

// A host of an earlier release gets none: nobody could recall it.
func TestHostWithoutWaits(t *testing.T) {
	d := newDoor(t)
	g := d.guest(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	g.guestRing.Agree([]string{FeatureLong})
	if o := d.enter(g, 1); o.n == 0 {
		d.until("it ends", func() bool { return o.n > 0 })
	} else if o.last.Outcome != engine.NotExecuted || o.last.Status != wire.StatusUnsupported {
		t.Errorf("%+v", o.last)
	}
	if n := g.hostRing.Counts.Taken; n != 0 {
		t.Errorf("the host has taken %d entries", n)
	}
}

// Whatever a guest writes into the entry of such an operation, it completes or waits
// within the guest's room, and goes with the guest.
func TestGuestsOddWaits(t *testing.T) {
	d := newDoor(t)
	g := d.guest(Sizes{Entries: 256, Arena: MinArena, Arrivals: MinArrivals})
	x := engine.Entry{Verb: wire.VerbWait, Peer: 1, Key: 1, Count: 1, Opcode: uint8(atomic.Cswap), Datatype: uint8(atomic.Uint64)}
	odd := []func(*engine.Entry){
		func(x *engine.Entry) { x.Count = 0 },
		func(x *engine.Entry) { x.Count = 2 },
		func(x *engine.Entry) { x.Count = 1 << 31 },
		func(x *engine.Entry) { x.Datatype = uint8(atomic.Uint128) },
		func(x *engine.Entry) { x.Datatype = 255 },
		func(x *engine.Entry) { x.Opcode = wire.OpRead },
		func(x *engine.Entry) { x.Opcode = 255 },
		func(x *engine.Entry) { x.Opcode = uint8(atomic.Sum) },
		func(x *engine.Entry) { x.Offset = 1 << 63 },
		func(x *engine.Entry) { x.Offset = 3 },
		func(x *engine.Entry) { x.Key = 77 },
		func(x *engine.Entry) { x.Incarnation = 5 },
		func(x *engine.Entry) { x.Peer = 99 },
		func(x *engine.Entry) { x.Data = 1 },
	}
	for flag := range 8 {
		odd = append(odd, func(x *engine.Entry) { x.Flags = 1 << flag })
		odd = append(odd, func(x *engine.Entry) { x.Flags = engine.FlagOutside | 1<<flag })
	}
	for i, change := range odd {
		y := x
		y.Cookie = uint64(i)
		change(&y)
		g.guestRing.segment.entries[g.guestRing.posted&g.guestRing.mask()] = y
		g.guestRing.posted++
	}
	g.guestRing.Flush()
	until := d.now + int64(50*time.Millisecond)
	d.until("time passes", func() bool { return d.now > until })
	if g.broken != nil || g.hostRing.Counts.Taken != uint64(len(odd)) {
		t.Errorf("%d of %d entries are taken; %v", g.hostRing.Counts.Taken, len(odd), g.broken)
	}
	if n := g.hostRing.waits; n != d.exec.Usage().Waiting {
		t.Errorf("the host counts %d, and %d wait at the target", n, d.exec.Usage().Waiting)
	}
	for i := range odd {
		g.guestRing.Leave(uint32(i))
	}
	g.guestRing.Flush()
	d.waits(0)
	if r := g.hostRing; r.waits != 0 || len(r.free) != len(r.ops) {
		t.Errorf("%d operations wait, and %d of %d are free", r.waits, len(r.free), len(r.ops))
	}
}
