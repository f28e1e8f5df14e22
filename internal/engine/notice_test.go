// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// events are those of a node.
type events struct {
	room, taken int
	list        []engine.Event
	check       func(e *engine.Event) // at the time of each
}

func (x *events) Take() bool {
	if x.taken >= x.room {
		return false
	}
	x.taken++
	return true
}

func (x *events) Return() { x.taken-- }

func (x *events) Deliver(e *engine.Event) {
	x.list = append(x.list, *e)
	if x.check != nil {
		x.check(e)
	}
}

// notices is a bench whose second node takes events.
func notices(t testing.TB, seed uint64, cfg session.Config) *bench {
	cfg.Features = wire.FeatureNotices | wire.FeatureUnordered
	bn := newBench(t, seed, cfg)
	bn.b.told = &events{room: 1 << 20}
	return bn
}

// ring returns a submission queue.
func ring(t testing.TB) *engine.Ring {
	r, err := engine.NewRing(256, engine.Contexts{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tell posts an operation with data: additions of 1 to count words from a place on.
func (bn *bench) tell(p *engine.Peer, to engine.Completer, verb wire.Verb, first, count int, data uint64) {
	s := bn.a.ring.Claim()
	for ; s == nil; s = bn.a.ring.Claim() {
		bn.step()
	}
	s.Peer, s.Context, s.Key, s.Offset, s.Count = p.ID(), to, 1, uint64(8*first), uint32(count)
	s.Verb, s.Opcode, s.Datatype, s.Flags, s.Data = verb, uint8(atomic.Sum), uint8(atomic.Uint64), engine.FlagData, data
	s.Result = nil
	if verb != wire.VerbAtomic {
		s.Result = make([]byte, 8*count)
	}
	s.SetOperands(bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, count), nil)
	s.Publish()
}

// Every form and length of an operation has its event: one, with everything that it says,
// and not before memory has changed.
func TestNotices(t *testing.T) {
	bn := notices(t, 1, session.Config{})
	mem := bn.region(1, 64<<10, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	for i, c := range []struct {
		verb  wire.Verb
		count int
	}{{wire.VerbAtomic, 1}, {wire.VerbFetch, 1}, {wire.VerbAtomic, 100}, {wire.VerbFetch, 3000}, {wire.VerbAtomic, 5000}} {
		var r results
		bn.b.told.check = func(*engine.Event) {
			if got := binary.LittleEndian.Uint64(mem[8*(c.count-1):]); got == 0 {
				t.Errorf("%+v: an event before the last element has changed", c)
			}
		}
		clear(mem)
		bn.tell(p, &r, c.verb, 0, c.count, uint64(i)<<40)
		bn.until(func() bool { return r.n == 1 })
		want := engine.Event{
			Notice: wire.Notice{Data: uint64(i) << 40, Length: uint64(8 * c.count), Returns: c.verb == wire.VerbFetch},
			From:   wire.Addr{MAC: macA},
		}
		got := bn.b.told.list[len(bn.b.told.list)-1]
		got.Covers = 0
		if r.last.Outcome != engine.Success || len(bn.b.told.list) != i+1 || got != want {
			t.Fatalf("%+v: %+v, event %d of %d: %+v, want %+v", c, r.last, i, len(bn.b.told.list), got, want)
		}
	}
}

// An operation of which an element fails has no event.
func TestNoNoticeOfFailure(t *testing.T) {
	bn := notices(t, 1, session.Config{})
	bn.region(1, 8000, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	xs := make([]mr.Extent, 900)
	for i := range xs {
		xs[i] = mr.Extent{Key: 1, Offset: uint64(8 * i), Count: 1}
	}
	for _, bad := range []int{0, 1, 450, 899, -1} {
		list := append([]mr.Extent(nil), xs...)
		if bad >= 0 {
			list[bad].Offset = 1 << 20
		}
		var r, next results
		before := len(bn.b.told.list)
		s := bn.a.ring.Claim()
		s.Peer, s.Context, s.Key, s.Offset, s.Count = p.ID(), &r, 0, 0, uint32(len(list))
		s.Verb, s.Opcode, s.Datatype, s.Flags, s.Data, s.Result = wire.VerbAtomic, uint8(atomic.Sum), uint8(atomic.Uint64), engine.FlagData, 5, nil
		s.SetExtents(list)
		s.SetOperands(bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, len(list)), nil)
		s.Publish()
		bn.tell(p, &next, wire.VerbAtomic, 0, 1, 6)
		bn.until(func() bool { return r.n+next.n == 2 })
		got := bn.b.told.list[before:]
		switch {
		case next.last.Outcome != engine.Success || len(got) == 0 || got[len(got)-1].Data != 6:
			t.Fatalf("extent %d is bad: the operation behind it: %+v, events %+v", bad, next.last, got)
		case bad < 0 && (r.last.Outcome != engine.Success || len(got) != 2 || got[0].Data != 5):
			t.Fatalf("no extent is bad: %+v, events %+v", r.last, got)
		case bad >= 0 && (r.last.Outcome != engine.Unknown || r.last.Status != wire.StatusOutOfBounds || len(got) != 1):
			t.Fatalf("extent %d is bad: %+v, events %+v", bad, r.last, got)
		}
	}
}

// A peer without the feature, or whose endpoint takes no events, refuses the operation
// whole; others go on.
func TestNoticeRefused(t *testing.T) {
	for _, old := range []bool{false, true} {
		bn := newBench(t, 1, session.Config{Features: wire.FeatureNotices})
		if old {
			bn = newBench(t, 1, session.Config{})
			bn.b.told = &events{room: 9}
		}
		mem := bn.region(1, 8000, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		var r results
		for _, n := range []int{1, 900} {
			bn.tell(p, &r, wire.VerbAtomic, 0, n, 1)
		}
		var plain results
		bn.fetchAdd(p, &plain, 1, 0, 1, make([]byte, 8))
		bn.until(func() bool { return r.n == 2 && plain.n == 1 })
		if r.fates[engine.NotExecuted] != 2 || r.last.Reason != session.NoEvents || plain.last.Outcome != engine.Success || mem[8] != 0 {
			t.Errorf("old %t: %+v; the one behind: %+v; memory %d", old, r, plain.last, mem[8])
		}
	}
}

// With no place for events nothing that asks for one runs, nor anything behind it;
// nothing is lost when there is room again.
func TestNoticesWaitForRoom(t *testing.T) {
	bn := notices(t, 1, session.Config{GiveUp: time.Hour})
	mem := bn.region(1, 8000, mr.RemoteRead|mr.RemoteWrite)
	p, told := bn.peer(0), bn.b.told
	told.room = 3
	var r results
	for i := range 40 {
		bn.tell(p, &r, wire.VerbAtomic, i, 1, uint64(i))
	}
	for range 1000 {
		bn.step()
	}
	if r.n != 3 || len(told.list) != 3 || mem[8*3] != 0 {
		t.Fatalf("room for 3 events: %d completions, %d events, word 3 is %d", r.n, len(told.list), mem[8*3])
	}
	for told.room < 40 {
		told.room++
		bn.until(func() bool { return r.n == told.room })
	}
	if len(told.list) != 40 || r.fates[engine.Success] != 40 {
		t.Errorf("%d events, %+v", len(told.list), r)
	}
	for i, e := range told.list {
		if e.Data != uint64(i) {
			t.Fatalf("event %d has data %d", i, e.Data)
		}
	}
}

// A target that has no room, and is too old to say so, is given up as one that is silent,
// and says later that the operation has not been executed.
func TestNoRoomForLong(t *testing.T) {
	bn := notices(t, 1, session.Config{GiveUp: 100 * time.Millisecond})
	mem := bn.region(1, 8000, mr.RemoteRead|mr.RemoteWrite)
	p, told := bn.peer(0), bn.b.told
	told.room = 0
	began := bn.now
	var r laters
	bn.tell(p, &r, wire.VerbAtomic, 0, 1, 5)
	bn.until(func() bool { return r.n == 1 })
	if waited := time.Duration(bn.now - began); r.last.Outcome != engine.Unknown || waited < 100*time.Millisecond || waited > 200*time.Millisecond {
		t.Fatalf("%+v after %v: want an unknown outcome after the give-up time of 100 ms", r.last, waited)
	}
	told.room = 1
	var next results
	bn.tell(p, &next, wire.VerbAtomic, 1, 1, 6)
	bn.until(func() bool { return next.n == 1 })
	<-r.later[0].Done()
	if later, _ := r.later[0].Outcome(); later.Outcome != engine.NotExecuted || mem[0] != 0 || len(told.list) != 1 || told.list[0].Data != 6 {
		t.Errorf("%+v, word %d, events %+v: want only the second operation executed", later, mem[0], told.list)
	}
}

// Through losses, duplicates, resets and give-ups: an operation that succeeds has one
// event, any other at most one, and they come in order, if there is one.
func TestNoticeFates(t *testing.T) {
	for seed := range uint64(80) {
		unordered := seed%4 == 3
		rng := rand.New(rand.NewPCG(seed, 4))
		bn := notices(t, seed, session.Config{GiveUp: 200 * time.Millisecond})
		mem := bn.region(1, 800_000, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		if unordered {
			p = bn.unorderedPeer()
		}
		bn.a.port.SetFaults(port.Faults{Loss: 0.1, Reorder: 0.2, Duplicate: 0.2})
		bn.b.port.SetFaults(port.Faults{Loss: 0.1, Reorder: 0.2, Duplicate: 0.2})
		type one struct {
			laters
			first, n int
		}
		var all []*one
		next, cut := 0, 5+rng.IntN(60)
		for i := range 100 {
			if i == cut {
				bn.b.port.SetFaults(port.Faults{Loss: 1})
				bn.a.port.SetFaults(port.Faults{Loss: 0.6})
			}
			if i == cut+20 {
				for _, o := range all {
					bn.until(func() bool { return o.results.n == 1 })
				}
				bn.a.port.SetFaults(port.Faults{Loss: 0.05})
				bn.b.port.SetFaults(port.Faults{Loss: 0.05})
			}
			o := &one{first: next, n: 1}
			if rng.IntN(2) == 0 {
				o.n = 1 + rng.IntN(900)
			}
			next += o.n
			bn.tell(p, o, wire.Verb(1+rng.IntN(2)), o.first, o.n, uint64(i))
			all = append(all, o)
			if rng.IntN(3) == 0 {
				bn.step()
			}
		}
		bn.b.told.check = nil
		for i, o := range all {
			bn.until(func() bool { return o.results.n == 1 })
			r := o.last
			for _, l := range o.later {
				bn.until(func() bool {
					select {
					case <-l.Done():
						return true
					default:
						return false
					}
				})
				r, _ = l.Outcome()
			}
			came := 0
			for _, e := range bn.b.told.list {
				if e.Data == uint64(i) {
					came++
				}
			}
			whole := mem[8*o.first] == 1 && mem[8*(o.first+o.n-1)] == 1
			if came > 1 || came == 1 && !whole || r.Outcome == engine.Success && came != 1 || r.Outcome == engine.NotExecuted && came != 0 {
				t.Fatalf("seed %d, operation %d: %+v, %d events, whole: %t", seed, i, r, came, whole)
			}
		}
		for i, e := range bn.b.told.list {
			if i > 0 && !unordered && e.Data <= bn.b.told.list[i-1].Data {
				t.Fatalf("seed %d: event %d comes behind %d", seed, e.Data, bn.b.told.list[i-1].Data)
			}
		}
	}
}

// A target that has no room is not given up while it lives and says so; when it is silent
// it is.
func TestNoRoomIsNoSilence(t *testing.T) {
	cfg := session.Config{GiveUp: 100 * time.Millisecond, Features: wire.FeatureNotices | wire.FeatureEchoes}
	bn := newBench(t, 1, cfg)
	bn.b.told = &events{}
	bn.region(1, 8000, mr.RemoteRead|mr.RemoteWrite)
	p, told := bn.peer(0), bn.b.told
	for _, silent := range []bool{false, true} {
		told.room = 0
		var r results
		bn.tell(p, &r, wire.VerbAtomic, 0, 1, 5)
		for until := bn.now + int64(5*time.Minute); bn.now < until; {
			bn.step()
		}
		if r.n > 0 {
			t.Fatalf("%+v while there is no room", r.last)
		}
		want := engine.Success
		if silent {
			want = engine.Unknown
			bn.b.port.SetFaults(port.Faults{Loss: 1})
		} else {
			told.room = 1
		}
		began := bn.now
		bn.until(func() bool { return r.n == 1 })
		if took := time.Duration(bn.now - began); r.last.Outcome != want || took > 2*time.Second {
			t.Errorf("silent %t: %+v after %v", silent, r.last, took)
		}
	}
}
