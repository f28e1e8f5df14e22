// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"testing"
)

// A frame with a message that has no room changes nothing, whatever came before it.
func TestAbort(t *testing.T) {
	r := newRig(t)
	in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	all := text(3 * ChunkSize)
	r.send(in, sent{Head: Head{Tagged: true, Tag: 9}, data: all, part: 1})
	r.post(anySource("a", 16))
	r.post(multi("m", 10, 3))
	r.post(byTag("t", 1, 0))
	before, free := r.q.Usage(), r.sink.free
	if r.send(in, tagged(1, "x"), plain("a"), plain("12345"), plain("123"), tagged(5, "held"), sent{data: all}) {
		t.Fatal("admitted beyond the budget")
	}
	if u := r.q.Usage(); u != before || r.sink.free != free {
		t.Errorf("%+v, %d places, want %+v, %d", u, r.sink.free, before, free)
	}
	r.more(in, all[1:])
	r.send(other, plain("a"), plain("12345"), plain("123"))
	r.send(in, tagged(1, "t"))
	r.want("a:1", "m:5", "m:3 released", "t:1")
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(*Config, *places)
		frame []sent
		ok    bool
	}{
		{"as many as there are", func(*Config, *places) {}, []sent{plain(""), plain("1"), plain("2"), plain("3")}, true},
		{"one more", func(*Config, *places) {}, []sent{plain(""), plain("1"), plain("2"), plain("3"), plain("4")}, false},
		{"none", func(c *Config, _ *places) { c.Unexpected = 0 }, []sent{plain("")}, false},
		{"all the memory", func(*Config, *places) {}, []sent{{data: text(ChunkSize)}, {data: text(3 * ChunkSize)}}, true},
		{"a byte more", func(*Config, *places) {}, []sent{{data: text(ChunkSize + 1)}, {data: text(3 * ChunkSize)}}, false},
		{"a chunk for each", func(c *Config, _ *places) { c.Memory = 2 * ChunkSize }, []sent{{data: text(65)}, {data: text(65)}, {data: text(65)}}, false},
		{"no memory, short", func(c *Config, _ *places) { c.Memory = 0 }, []sent{{data: text(64)}}, true},
		{"no memory, long", func(c *Config, _ *places) { c.Memory = 0 }, []sent{{data: text(65)}}, false},
		{"memory is rounded up", func(c *Config, _ *places) { c.Memory = 1 }, []sent{{data: text(ChunkSize)}}, true},
	} {
		r := newRig(t, c.setup)
		if r.send(r.q.NewInflow(peer(1)), c.frame...) != c.ok {
			t.Errorf("%s: admitted %v, want %v", c.name, !c.ok, c.ok)
		}
	}
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	in.Begin()
	if in.admit(&Head{Length: 1 << 63}, in.from) || in.admit(&Head{Length: ^uint64(0)}, in.from) {
		t.Error("a message of 2^63 bytes was admitted")
	}
	in.Abort()
	r.check()
}

// Room is called once for what was refused, when something made room.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(r *rig, in *Inflow)
	}{
		{"post that waits", func(r *rig, _ *Inflow) { r.post(byTag("x", 1, 0)) }},
		{"post that takes", func(r *rig, _ *Inflow) { r.post(anySource("x", 1)) }},
		{"peek and discard", func(r *rig, _ *Inflow) { r.q.Peek(&Match{AnySource: true}, Discard, nil) }},
		{"cancel", func(r *rig, _ *Inflow) { r.q.Cancel("y") }},
		{"a session ends", func(_ *rig, in *Inflow) { in.Close() }},
	} {
		r := newRig(t)
		in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
		r.send(in, plain("1"), plain("2"), plain("3"), sent{data: []byte("45"), part: 1})
		r.post(byTag("y", 2, 0)) // nobody waits yet
		for range 2 {
			if r.send(other, plain("x")) {
				t.Fatal("admitted")
			}
		}
		if r.rooms != 0 {
			t.Fatalf("%s: Room was called %d times before there was room", c.name, r.rooms)
		}
		r.q.Peek(&Match{AnySource: true}, Look, nil)
		if r.rooms != 0 {
			t.Fatalf("%s: Room was called %d times though nothing made room", c.name, r.rooms)
		}
		c.make(r, in)
		if r.check(); r.rooms != 1 {
			t.Errorf("%s: Room was called %d times", c.name, r.rooms)
		}
		r.post(byTag("z", 2, 0))
		if r.rooms != 1 {
			t.Errorf("%s: Room was called again, though nothing was refused", c.name)
		}
	}
}

// The receive of a message whose session ends is where it was, and takes the next
// message.
func TestSessionEndsInAMessage(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	for _, c := range []string{"a", "b", "c"} {
		r.post(anySource(c, 16))
	}
	r.send(one, plain("1"), sent{data: []byte("lost"), part: 2})
	r.want("a:1")
	one.Close()
	r.check()
	r.send(two, plain("22"), plain("333"))
	r.want("b:2", "c:3")
}

func TestReceiveOfALostMessageTakesOneThatIsHeld(t *testing.T) {
	r := newRig(t)
	one, two, three := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2)), r.q.NewInflow(peer(3))
	a := anySource("a", 16)
	r.post(a)
	r.send(one, sent{data: []byte("lost"), part: 3})
	r.send(two, sent{data: []byte("22"), part: 1})
	r.send(three, plain("333"))
	one.Close()
	r.check()
	two.Close() // half of it had been taken
	r.want("a:3")
	same(t, a.Buffers[0], "333")
	if u := r.q.Usage(); u.Held != 0 || u.Posted != 0 || u.Inflows != 1 {
		t.Errorf("%+v", u)
	}
}

func TestHeldMessageIsLostWithItsSession(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.send(in, plain("whole"), sent{data: text(5000), part: 3000})
	in.Close()
	r.check()
	if u := r.q.Usage(); u.Held != 1 || u.Memory != 0 || u.Made != 2*ChunkSize {
		t.Errorf("%+v", u)
	}
	r.post(anySource("a", 16))
	r.want("a:5")
}

// Pieces that belong to no message are told from those that do, and change nothing.
func TestBadPieces(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	if in.Continues(0, 0) || in.Continues(0, 1) {
		t.Error("something continues though nothing has begun")
	}
	put := func(data string, want error) {
		t.Helper()
		if err := in.Put([]byte(data)); !errors.Is(err, want) {
			t.Errorf("Put of %q: %v, want %v", data, err, want)
		}
	}
	in.Begin()
	put("", ErrPiece)
	in.admit(plain("abcd").head(), in.from)
	in.admit(plain("xy").head(), in.from)
	put("abcde", ErrPiece)
	put("ab", nil)
	put("cde", ErrPiece)
	if err := in.End(); !errors.Is(err, ErrNoPiece) {
		t.Errorf("End: %v, though a message was admitted and has no piece", err)
	}
	r.check()
	for _, c := range []struct {
		offset, n uint64
		ok        bool
	}{{2, 1, true}, {2, 2, true}, {2, 3, false}, {1, 1, false}, {3, 1, false}, {2, 0, false}, {2, ^uint64(0), false}} {
		if in.Continues(c.offset, c.n) != c.ok {
			t.Errorf("%d bytes at %d: continues %v", c.n, c.offset, !c.ok)
		}
	}
	if has, lacks := in.InProgress(); has != 2 || lacks != 2 {
		t.Errorf("has %d, lacks %d", has, lacks)
	}
	r.more(in, []byte("cd"))
	r.post(anySource("a", 16))
	r.post(anySource("b", 16))
	r.want("a:4") // the second message had no piece
}

// A frame that is refused, while a multi-receive lacks a place, calls for no room when it
// ends: it would call itself, for ever. One that brings something does, since others may
// be able to hold what was for the multi-receive.
func TestRefusedFrameCallsForNoRoom(t *testing.T) {
	r := newRig(t, func(c *Config, s *places) { c.Unexpected, s.free = 0, 1 })
	rx := anySource("multi", 10)
	rx.Multi, rx.MinFree = true, 1
	r.post(rx)
	in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	for range 3 {
		in.Begin()
		if in.admit(plain("abc").head(), peer(1)) {
			t.Fatal("admitted without a place for its completion")
		}
		if err := in.End(); err != nil || r.rooms != 0 {
			t.Fatalf("%v; a refused frame has called for room %d times", err, r.rooms)
		}
		r.check()
	}
	if !r.send(other, plain("0123456789")) || r.rooms != 1 {
		t.Fatalf("the message that fills the buffer has called for room %d times, want once", r.rooms)
	}
}
