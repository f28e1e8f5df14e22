// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestPeek(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	any := &Match{Tagged: true, Ignore: ^uint64(0), AnySource: true}
	if d, ok := r.q.Peek(any, Look, "p"); ok || d.Context != "p" || !d.Tagged {
		t.Errorf("found %+v", d)
	}
	r.send(in, plain("untagged"))
	r.send(in, sent{Message: wire.Message{Tagged: true, Tag: 7, HasData: true, Data: 8}, data: text(100), part: 10})
	for range 2 { // the message stays
		d, ok := r.q.Peek(any, Look, "p")
		if !ok || d.Context != "p" || d.Length != 100 || d.Tag != 7 || !d.HasData || d.Data != 8 || d.From != peer(1) || d.Buf != nil {
			t.Errorf("%v %+v", ok, d)
		}
	}
	if _, ok := r.q.Peek(&Match{Tagged: true, Tag: 6, AnySource: true}, Look, "p"); ok {
		t.Error("a message with another tag was found")
	}
	if _, ok := r.q.Peek(&Match{Tagged: true, Tag: 7, From: peer(2)}, Look, "p"); ok {
		t.Error("a message of another sender was found")
	}
	if u := r.q.Usage(); u.Held != 2 || u.Places != 0 {
		t.Errorf("%+v", u)
	}
}

// A receive takes the message that a peek has told of before, though one of another
// sender is here as a whole, or comes in between.
func TestReceiveFollowsPeek(t *testing.T) {
	r := newRig(t)
	slow, first, second := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2)), r.q.NewInflow(peer(3))
	r.send(slow, sent{data: text(100), part: 10})
	r.send(first, plain("whole"))
	d, ok := r.q.Peek(&Match{AnySource: true}, Look, "p")
	if !ok || d.From != peer(1) || d.Length != 100 {
		t.Fatalf("found %+v, %t; want the oldest", d, ok)
	}
	r.send(second, plain("in between"))
	r.post(anySource("x", int(d.Length)))
	r.want()
	r.more(slow, text(100)[10:])
	if done := r.want("x:100"); done[0].From != d.From {
		t.Errorf("a message from %v, want %v", done[0].From, d.From)
	}
}

func TestClaim(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	for i := range 4 {
		r.send(in, tagged(uint64(i), "abcd"[:i+1]))
	}
	claim := func(tag uint64, context any) {
		t.Helper()
		if d, ok := r.q.Peek(&Match{Tagged: true, Tag: tag, AnySource: true}, Claim, context); !ok || d.Length != tag+1 {
			t.Fatalf("%v %+v", ok, d)
		}
		r.check()
	}
	claim(2, "c")
	claim(1, "c")
	claim(0, "d")
	if u := r.q.Usage(); u.Claimed != 3 || u.Held != 4 {
		t.Errorf("%+v", u)
	}
	// Neither an ordinary receive nor a peek has it.
	if d, _ := r.q.Peek(&Match{Tagged: true, Ignore: ^uint64(0), AnySource: true}, Look, "p"); d.Length != 4 {
		t.Errorf("%+v", d)
	}
	r.post(byTag("ordinary", 2, 0))
	r.want()
	// The paired receive has, whatever its tag: the oldest claim first.
	paired := anySource("c", 64)
	paired.Claim = true
	r.post(paired)
	same(t, paired.Buffers[0], "abc")
	r.post(paired)
	r.want("c:3", "c:2")
	if err := r.q.Post(&paired); !errors.Is(err, ErrNotClaimed) {
		t.Errorf("%v", err)
	}
	if d, ok := r.q.Discard("d"); !ok || d.Length != 1 || d.Context != "d" {
		t.Errorf("%v %+v", ok, d)
	}
	if d, ok := r.q.Discard("d"); ok || d.Context != "d" {
		t.Errorf("%+v", d)
	}
	if u := r.q.Usage(); u.Claimed != 0 || u.Held != 1 || u.Posted != 1 {
		t.Errorf("%+v", u)
	}
}

// The receive of a claimed message waits for the rest of it, and for no other message.
func TestClaimOfAMessageThatIsPartlyHere(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRig(t)
		in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
		all := text(3000)
		r.send(in, sent{data: all, part: 2100})
		if _, ok := r.q.Peek(&Match{AnySource: true}, Claim, "c"); !ok {
			t.Fatal("not found")
		}
		r.more(in, all[2100:2200])
		rx := anySource("c", 3000)
		rx.Claim = true
		r.post(rx)
		if r.q.Cancel("c") {
			t.Error("cancelled though a message is going in")
		}
		if lost {
			in.Close()
			r.send(other, plain("other"))
			r.want("c:0 lost")
			continue
		}
		r.send(other, plain("other"))
		r.more(in, all[2200:])
		r.want("c:3000")
		same(t, rx.Buffers[0], string(all))
	}
}

func TestClaimIsVoidWhenTheSessionEnds(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.send(in, sent{data: text(3000), part: 2100})
	r.q.Peek(&Match{AnySource: true}, Claim, "c")
	in.Close()
	r.check()
	rx := anySource("c", 3000)
	rx.Claim = true
	if err := r.q.Post(&rx); !errors.Is(err, ErrNotClaimed) {
		t.Error(err)
	}
	if u := r.q.Usage(); u.Held != 0 || u.Memory != 0 {
		t.Errorf("%+v", u)
	}
}

// What is discarded makes room, and the rest of it is dropped as it comes.
func TestDiscard(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		r := newRig(t)
		in, other := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
		all := text(4 * ChunkSize)
		r.send(in, sent{data: all, part: 2500})
		if r.send(other, sent{data: all}) {
			t.Fatal("the budget is exceeded")
		}
		if claimed {
			r.q.Peek(&Match{AnySource: true}, Claim, "c")
			r.q.Discard("c")
		} else if d, ok := r.q.Peek(&Match{AnySource: true}, Discard, "c"); !ok || d.Length != uint64(len(all)) {
			t.Errorf("%v %+v", ok, d)
		}
		r.check()
		if u := r.q.Usage(); u.Held != 0 || u.Memory != 0 || r.rooms != 1 {
			t.Errorf("%+v, Room called %d times", u, r.rooms)
		}
		if !r.send(other, sent{data: all}) {
			t.Error("refused with room")
		}
		r.more(in, all[2500:5000])
		r.post(anySource("x", 0)) // takes the other one
		r.more(in, all[5000:])
		r.send(in, plain("next"))
		r.post(anySource("y", 10))
		r.want("x:8192 truncated", "y:4")
	}
}
