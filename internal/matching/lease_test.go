// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// lease leases room.
func (r *rig) lease(in *Inflow, all bool) Room {
	r.t.Helper()
	in.Begin()
	room := in.Lease(all)
	in.End()
	r.check()
	return room
}

// reclaim takes room back.
func (r *rig) reclaim(in *Inflow, room Room) {
	r.t.Helper()
	in.Begin()
	in.Reclaim(room)
	in.End()
	r.check()
}

// leased sends a message for which there is room that was leased.
func (r *rig) leased(in *Inflow, s sent) {
	r.t.Helper()
	s.Length = uint64(len(s.data))
	in.Begin()
	in.AdmitLeased(&s.Message)
	in.Put(s.data[:s.first()])
	in.End()
	r.check()
}

// Each message costs a place and, if it is longer than 64 bytes, whole chunks.
func TestRoomToLease(t *testing.T) {
	for _, c := range []struct {
		room   Room
		length uint64
		left   Room
		ok     bool
	}{
		{Room{1, 0}, 0, Room{0, 0}, true},
		{Room{1, 0}, 64, Room{0, 0}, true},
		{Room{1, 0}, 65, Room{1, 0}, false},
		{Room{0, ChunkSize}, 0, Room{0, ChunkSize}, false},
		{Room{2, ChunkSize}, 65, Room{1, 0}, true},
		{Room{2, 3 * ChunkSize}, ChunkSize + 1, Room{1, ChunkSize}, true},
		{Room{2, math.MaxUint32}, math.MaxUint64, Room{2, math.MaxUint32}, false},
	} {
		r := c.room
		if ok := r.Spend(c.length); ok != c.ok || r != c.left {
			t.Errorf("%+v for %d bytes: %v, and %+v is left; want %v, %+v", c.room, c.length, ok, r, c.ok, c.left)
		}
	}
	r := Room{math.MaxUint32 - 1, 7}
	if r.Add(Room{5, math.MaxUint32}); r != (Room{math.MaxUint32, math.MaxUint32}) {
		t.Errorf("more than there can be: %+v", r)
	}
}

// What is leased is not there for others, and a message for which it was leased always
// has room.
func TestLease(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	if !r.send(two, plain("held")) {
		t.Fatal("a message is refused that there is room for")
	}
	if got, want := r.lease(one, false), (Room{3, 4 * ChunkSize}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if r.send(two, plain("none")) {
		t.Fatal("a message is held in room that is leased")
	}
	long := text(3 * ChunkSize)
	r.leased(one, sent{data: []byte("a")})
	r.leased(one, sent{data: long, part: 5})
	if u := r.q.Usage(); u.Held != 3 || u.Leased != (Room{1, ChunkSize}) || u.Memory != 3*ChunkSize {
		t.Fatalf("%+v", u)
	}
	r.more(one, long[5:])
	if room := r.lease(one, true); room != (Room{}) {
		t.Fatalf("%+v is leased while a message waits for room", room)
	}
	r.reclaim(one, Room{1, ChunkSize})
	if r.rooms != 1 || !r.send(two, plain("waited")) {
		t.Fatalf("room that was given back: told %d times", r.rooms)
	}
	r.leased(one, plain("too much")) // nothing is leased any more
	buf := Receive{Match: Match{AnySource: true, From: peer(1)}, Buf: make([]byte, len(long))}
	for _, want := range []string{"held", "a", string(long), "waited"} {
		buf.Context = len(want)
		r.post(buf)
		if got := r.sink.read(r.q); len(got) != 1 || string(buf.Buf[:got[0].Received]) != want {
			t.Fatalf("%+v, want %d bytes", got, len(want))
		}
	}
	if got, want := r.lease(one, false), (Room{4, 4 * ChunkSize}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if r.lease(one, true) != (Room{}) {
		t.Error("there was no room left")
	}
	r.q.ReclaimAll()
	r.check()
	if u := r.q.Usage(); u.Leased != (Room{}) || u.Memory != 0 {
		t.Errorf("%+v", u)
	}
}

// A little room is leased only to those that need it.
func TestLeaseWorthTelling(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	for range 3 {
		r.send(in, sent{data: text(ChunkSize)})
	}
	if room := r.lease(in, false); room != (Room{}) {
		t.Errorf("%+v of 4 messages and chunks", room)
	}
	if room := r.lease(in, true); room != (Room{1, ChunkSize}) {
		t.Errorf("%+v", room)
	}
	r.q.Close()
	if room := r.lease(in, true); room != (Room{}) {
		t.Errorf("%+v of a queue that is closed", room)
	}
	r.leased(in, plain("late")) // is dropped
}

// A message that comes for leased room, for a multi-receive without a place for its
// completion, is held until there is one.
func TestLeaseWithoutAPlace(t *testing.T) {
	r := newRig(t, func(_ *Config, s *places) { s.free = 1 })
	in := r.q.NewInflow(peer(1))
	r.post(multi("m", 10, 1))
	r.lease(in, true)
	r.leased(in, plain("abc"))
	r.leased(in, plain("de"))
	r.want()
	r.sink.free = 4
	r.q.Freed()
	r.want("m:3", "m:2")
}

// An atomic tells how it will end, and what it will find, before it is combined.
func TestFind(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	buf := words(1, 2)
	for _, c := range []struct {
		offset uint64
		status wire.Status
		values []byte
		done   string
	}{{8, wire.StatusOK, words(2), "r:8"}, {16, wire.StatusOutOfBounds, words(0), "r:8 truncated"}, {4, wire.StatusMisaligned, words(0), "r:8 misplaced"}} {
		r.post(Receive{Match: Match{Tagged: true, Tag: 5, AnySource: true}, Context: "r", Buf: buf})
		m := adds(wire.VerbFetch, c.offset, 1)
		m.Begins, m.Tagged, m.Length, m.Part = true, true, 8, words(7)
		values := make([]byte, 8)
		in.Begin()
		if status := in.Find(values); status != wire.StatusNotExecuted {
			t.Errorf("before there is one: %v", status)
		}
		if !in.Admit(&m) || in.Find(values) != c.status || !bytes.Equal(values, c.values) {
			t.Errorf("offset %d: %v, values %v", c.offset, in.Find(nil), values)
		}
		in.Combine(&m, make([]byte, 8))
		in.End()
		r.want(c.done)
	}
	if !slices.Equal(buf, words(1, 9)) {
		t.Errorf("the buffer is %v", buf)
	}
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		if atomic.KernelOf(atomic.Fetch, atomic.Read, dt) == nil {
			t.Errorf("%v cannot be read", dt)
		}
	}
}
