// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestReceivesMatchInPostingOrder(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	for _, c := range []string{"a", "b", "c"} {
		r.post(anySource(c, 16))
	}
	r.send(in, plain("1"), plain("22"))
	r.send(in, plain("333"))
	r.want("a:1", "b:2", "c:3")
}

func TestUnexpectedMessagesMatchInOrderOfArrival(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	r.send(one, plain("1"))
	r.send(two, plain("22"))
	r.send(one, plain("333"))
	a, b := anySource("a", 16), anySource("b", 16)
	b.AnySource, b.From = false, peer(1)
	r.post(b)
	r.post(a)
	r.post(anySource("c", 16))
	d := r.want("b:1", "a:2", "c:3")
	same(t, a.Buffers[0], "22")
	if d[1].From != peer(2) || d[2].From != peer(1) {
		t.Errorf("senders %v and %v", d[1].From, d[2].From)
	}
	if u := r.q.Usage(); u.Held != 0 || u.Posted != 0 || u.Places != 0 {
		t.Errorf("%+v", u)
	}
}

// send_tag & ~ignore == recv_tag & ~ignore.
func TestTagsMatchUnderTheIgnoreMask(t *testing.T) {
	for _, c := range []struct {
		send, recv, ignore uint64
		match              bool
	}{
		{5, 5, 0, true},
		{5, 4, 0, false},
		{5, 4, 1, true},
		{0xff00, 0xaa00, 0xff00, true},
		{0xff01, 0xaa00, 0xff00, false},
		{1 << 63, 0, 1 << 63, true},
		{1 << 63, 0, 1 << 62, false},
		{123, 456, ^uint64(0), true},
	} {
		for _, first := range []string{"receive", "message"} {
			r := newRig(t)
			in := r.q.NewInflow(peer(1))
			if first == "receive" {
				r.post(byTag("x", c.recv, c.ignore))
			}
			r.send(in, tagged(c.send, "data"))
			if first == "message" {
				r.post(byTag("x", c.recv, c.ignore))
			}
			if got := len(r.sink.got) == 1; got != c.match {
				t.Errorf("%s first, %+v: match %v", first, c, got)
			}
			if c.match && r.sink.got[0].Tag != c.send {
				t.Errorf("%+v: completion with tag %#x, want the one that was sent", c, r.sink.got[0].Tag)
			}
		}
	}
}

func TestTheOldestMatchIsTakenNotTheBest(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(byTag("no", 1, 0))
	r.post(byTag("wide", 0, ^uint64(0)))
	r.post(byTag("exact", 2, 0))
	r.send(in, tagged(2, "x"), tagged(2, "yy"))
	r.want("wide:1", "exact:2")
}

func TestTaggedAndUntaggedAreApart(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(byTag("t", 0, ^uint64(0)))
	r.send(in, plain("1"))
	r.want()
	r.send(in, tagged(9, "22"))
	r.want("t:2")
	r.send(in, tagged(0, "333"))
	r.post(anySource("u", 16))
	r.want("u:1")
	r.post(byTag("t", 0, 0))
	if d := r.want("t:3"); !d[0].Tagged {
		t.Error("the completion is not a tagged one")
	}
}

func TestDirectedReceive(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	from2 := anySource("from 2", 16)
	from2.AnySource, from2.From = false, peer(2)
	r.post(from2)
	r.send(one, plain("1"))
	r.want()
	r.send(two, plain("22"))
	r.want("from 2:2")
	r.post(from2)
	r.want()
	r.post(anySource("any", 16))
	r.want("any:1")
}

// A sender is an endpoint of a node, not the node.
func TestSendersOfOneNodeAreApart(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	from5 := anySource("from 5", 16)
	from5.AnySource, from5.From = false, peer(1)
	from5.From.Endpoint = 5
	r.post(from5)
	r.send(in, plain("1"), sent{Message: wire.Message{Source: 5}, data: []byte("22")})
	if d := r.want("from 5:2"); d[0].From != from5.From {
		t.Errorf("from %v, want %v", d[0].From, from5.From)
	}
	r.post(anySource("any", 16))
	if d := r.want("any:1"); d[0].From != peer(1) {
		t.Errorf("from %v, want %v", d[0].From, peer(1))
	}
}

func TestCompletionsHaveRemoteData(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(anySource("a", 16))
	for range 2 {
		r.send(in, sent{Message: wire.Message{HasData: true, Data: 77}, data: []byte("x")})
	}
	r.post(anySource("b", 16))
	for _, d := range r.want("a:1", "b:1") {
		if !d.HasData || d.Data != 77 || d.Received != 1 {
			t.Errorf("%+v", d)
		}
	}
}

func TestTruncation(t *testing.T) {
	for _, c := range []struct{ buffer, length, part int }{{10, 11, 0}, {10, 5000, 0}, {0, 1, 0}, {100, 3000, 50}, {100, 3000, 2000}, {3000, 6000, 2999}} {
		for _, first := range []string{"receive", "message"} {
			r := newRig(t)
			in := r.q.NewInflow(peer(1))
			rx, all := anySource("x", c.buffer), text(c.length)
			if first == "receive" {
				r.post(rx)
			}
			r.send(in, sent{data: all, part: c.part})
			if first == "message" {
				r.post(rx)
			}
			if c.part > 0 {
				r.want()
				r.more(in, all[c.part:])
			}
			if len(r.sink.got) != 1 {
				t.Fatalf("%s first, %+v: no completion", first, c)
			}
			if d := r.sink.got[0]; d.Reason != Truncated || d.Received != uint64(c.buffer) || d.Length != uint64(c.length) {
				t.Errorf("%s first, %+v: %+v", first, c, d)
			}
			same(t, rx.Buffers[0], string(all[:c.buffer]))
			r.check()
		}
	}
}

// A message is scattered over the buffers, however its pieces are cut.
func TestScatteredReceive(t *testing.T) {
	all := text(5000)
	for _, cut := range []int{1, 9, 2048, 4096, 4999} {
		for _, first := range []string{"receive", "message"} {
			r := newRig(t)
			in := r.q.NewInflow(peer(1))
			rx := anySource("x", 0)
			for _, n := range []int{10, 0, 2000, 1, 2000, 2000} { // more than have room in the node
				rx.Buffers = append(rx.Buffers, make([]byte, n))
			}
			if first == "receive" {
				r.post(rx)
			}
			r.send(in, sent{data: all, part: cut})
			if first == "message" {
				r.post(rx)
			}
			r.more(in, all[cut:])
			r.want("x:5000")
			var got []byte
			for _, b := range rx.Buffers {
				got = append(got, b...)
			}
			same(t, got, string(all))
		}
	}
}

func TestEmptyMessages(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(anySource("a", 0))
	r.send(in, plain(""), plain(""), plain("x"))
	r.post(anySource("b", 16))
	r.post(Receive{Match: Match{AnySource: true}, Context: "c"})
	r.want("a:0", "b:0", "c:1 truncated")
}

// The rest of a message goes directly into the receive that took its beginning.
func TestReceiveTakesAMessageThatIsPartlyHere(t *testing.T) {
	r := newRig(t)
	in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	all := text(6000)
	r.send(in, sent{data: all}) // what is in the memory before
	r.q.Peek(&Match{AnySource: true}, Discard, nil)
	r.send(in, sent{data: all, part: 2500})
	r.send(other, plain("other"))
	rx := anySource("x", 6000)
	r.post(rx)
	if !bytes.Equal(rx.Buffers[0], append(slices.Clone(all[:2500]), make([]byte, 3500)...)) {
		t.Error("the buffer has other bytes than those that have come")
	}
	if u := r.q.Usage(); u.Memory != 0 || u.Held != 1 || u.Filling != 1 {
		t.Errorf("%+v", u)
	}
	r.post(anySource("y", 10))
	r.want("y:5")
	r.more(in, all[2500:2501])
	r.more(in, all[2501:])
	r.want("x:6000")
	same(t, rx.Buffers[0], string(all))
}

func TestFull(t *testing.T) {
	r := newRig(t)
	for i := range 8 {
		r.post(anySource(i, 1))
	}
	rx := anySource("x", 1)
	if err := r.q.Post(&rx); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	r.check()
	r = newRig(t, func(_ *Config, s *places) { s.free = 2 })
	in := r.q.NewInflow(peer(1))
	r.post(anySource("a", 1))
	r.post(anySource("b", 1))
	if err := r.q.Post(&rx); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	r.send(in, plain("1"))
	if err := r.q.Post(&rx); !errors.Is(err, ErrFull) {
		t.Fatal("a completion that nobody has read has no place any more")
	}
	r.want("a:1")
	r.post(rx)
}

func TestMatchComplete(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	m := sent{Message: wire.Message{Match: true, Tagged: true, Tag: 3}, data: []byte("x")}
	if r.send(in, m) {
		t.Fatal("admitted without a receive")
	}
	r.post(byTag("a", 4, 0))
	if r.rooms != 1 || r.send(in, m) {
		t.Fatalf("Room called %d times, or a receive with another tag has matched", r.rooms)
	}
	r.post(byTag("b", 3, 0))
	if r.rooms != 2 || !r.send(in, m) {
		t.Fatalf("Room called %d times, or refused with a receive", r.rooms)
	}
	r.want("b:1")
}
