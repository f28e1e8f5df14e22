// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// A message that has no room changes nothing. What came before it in its frame has run,
// and the message is admitted later.
func TestRefusedMessage(t *testing.T) {
	r := newRig(t)
	in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	all := text(3 * ChunkSize)
	r.send(in, sent{Message: wire.Message{Tagged: true, Tag: 9}, data: all, part: 1})
	r.post(anySource("a", 16))
	r.post(multi("m", 10, 3))
	r.post(byTag("t", 1, 0))
	if r.send(other, tagged(1, "t"), plain("a"), plain("12345"), tagged(5, "held"), sent{data: text(11)}, sent{data: all}) {
		t.Fatal("admitted beyond the budget")
	}
	r.want("t:1", "a:1", "m:5", "m:11 truncated released")
	before, free, rooms := r.q.Usage(), r.sink.free, r.rooms
	for range 2 {
		if r.send(other, sent{data: all, part: 1}) {
			t.Fatal("admitted beyond the budget")
		}
	}
	if u := r.q.Usage(); u != before || r.sink.free != free || r.rooms != rooms {
		t.Errorf("%+v, %d places, Room called %d times; want %+v, %d, %d", u, r.sink.free, r.rooms, before, free, rooms)
	}
	if has, lacks := other.InProgress(); has+lacks > 0 {
		t.Errorf("a refused message is in progress: has %d, lacks %d", has, lacks)
	}
	r.more(in, all[1:])
	r.post(byTag("t", 9, 0))
	if r.rooms != rooms+1 || !r.send(other, sent{data: all}) {
		t.Fatalf("Room called %d times, want %d, or refused with room", r.rooms, rooms+1)
	}
	r.post(anySource("b", len(all)))
	r.want("t:6144 truncated", "b:6144")
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
	if in.Admit(&wire.Message{Length: 1 << 63}) || in.Admit(&wire.Message{Length: ^uint64(0)}) {
		t.Error("a message of 2^63 bytes was admitted")
	}
	in.End()
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

// Bytes that no message lacks go nowhere, wherever the message goes.
func TestPutGoesNotBeyondTheMessage(t *testing.T) {
	for _, length := range []int{4, InlineSize, ChunkSize - 1, 2 * ChunkSize} {
		for _, first := range []string{"receive", "message"} {
			r := newRig(t)
			in := r.q.NewInflow(peer(1))
			rx, all := anySource("a", length+8), text(length)
			if first == "receive" {
				r.post(rx)
			}
			in.Begin()
			in.Put([]byte("nothing is in progress"))
			in.Admit(&wire.Message{Length: uint64(length)})
			in.Put(all[:2])
			if has, lacks := in.InProgress(); has != 2 || lacks != uint64(length-2) {
				t.Errorf("has %d, lacks %d of %d", has, lacks, length)
			}
			in.Put(append(all[2:], "beyond"...))
			in.Put([]byte("beyond"))
			if has, lacks := in.InProgress(); has != 0 || lacks != 0 {
				t.Errorf("has %d, lacks %d though nothing is in progress", has, lacks)
			}
			in.End()
			r.check()
			if first == "message" {
				r.post(rx)
			}
			r.want(fmt.Sprint("a:", length))
			same(t, rx.Buffers[0], string(text(length))+"\x00\x00\x00\x00\x00\x00\x00\x00")
		}
	}
}

// The sender lets go of a message: its receive takes the next one of the same frame.
func TestDrop(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	a := anySource("a", 16)
	r.post(a)
	r.send(in, sent{data: []byte("dropped"), part: 3})
	in.Begin()
	in.Drop()
	in.Drop() // there is nothing to drop
	plain("next").begin(in)
	in.End()
	r.check()
	r.want("a:4")
	same(t, a.Buffers[0], "next")
	r.send(in, sent{data: text(5000), part: 3000})
	if r.send(r.q.NewInflow(peer(2)), sent{data: text(4 * ChunkSize)}) {
		t.Fatal("admitted beyond the budget")
	}
	in.Begin()
	in.Drop()
	in.End()
	r.check()
	if u := r.q.Usage(); u.Held != 0 || u.Memory != 0 || r.rooms != 1 {
		t.Errorf("%+v, Room called %d times", u, r.rooms)
	}
}
