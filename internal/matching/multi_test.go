// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// multi is an untagged multi-receive of any sender.
func multi(context any, size, minFree int) Receive {
	r := anySource(context, size)
	r.Multi, r.MinFree = true, minFree
	return r
}

// Messages lie one behind another; the one that leaves too little releases the buffer.
func TestMultiReceive(t *testing.T) {
	for _, first := range []string{"receive", "messages"} {
		r := newRig(t)
		in := r.q.NewInflow(peer(1))
		rx := multi("m", 10, 4)
		send := func() { r.send(in, plain("abc"), plain("d"), plain("ef"), plain("ghi")) }
		if first == "messages" {
			send()
		}
		r.post(rx)
		if first == "receive" {
			r.post(anySource("next", 16))
			send()
		} else {
			r.want("m:3", "m:1", "m:2", "m:3 released")
			continue
		}
		d := r.want("m:3", "m:1", "m:2", "m:3 released")
		for i, want := range []string{"abc", "d", "ef", "ghi"} {
			if string(d[i].Buf) != want || cap(d[i].Buf) != len(want) {
				t.Errorf("message %d: %q of capacity %d", i, d[i].Buf, cap(d[i].Buf))
			}
		}
		same(t, rx.Buffers[0], "abcdefghi")
		r.send(in, plain("j"))
		r.want("next:1")
		if u := r.q.Usage(); u.Places != 0 || r.sink.free != 16 {
			t.Errorf("%+v, %d places", u, r.sink.free)
		}
	}
}

func TestMultiReceiveTruncatesWhatIsLongerThanItsRest(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	rx := multi("m", 10, 2)
	r.post(rx)
	r.send(in, plain("abcdef"), plain("ghijkl"))
	d := r.want("m:6", "m:6 truncated released")
	if d[1].Received != 4 {
		t.Errorf("%+v", d[1])
	}
	same(t, rx.Buffers[0], "abcdefghij")
}

// Messages of several sessions go into one buffer at once. The last one that is complete
// releases it, whichever that is.
func TestMultiReceiveOfSeveralSessions(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	rx := multi("m", 10, 1)
	r.post(rx)
	r.send(one, sent{data: []byte("abcdef"), part: 2})
	r.send(two, plain("ghij"))
	r.want("m:4")
	r.more(one, []byte("cdef"))
	r.want("m:6 released")
	same(t, rx.Buffers[0], "abcdefghij")
}

// What is complete stays, whichever message was complete first.
func TestMultiReceiveWhoseLaterMessageIsCompleteFirst(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	rx := multi("m", 12, 1)
	r.post(rx)
	r.send(one, sent{data: []byte("abcd"), part: 2})
	r.send(two, plain("efgh"))
	r.more(one, []byte("cd"))
	r.send(two, plain("ijkl"))
	r.want("m:4", "m:4", "m:4 released")
	same(t, rx.Buffers[0], "abcdefghijkl")
}

// What came before a refused message in its frame stays in the buffer, behind messages of
// others.
func TestMultiReceiveAfterARefusal(t *testing.T) {
	r := newRig(t, func(c *Config, _ *places) { c.Unexpected = 0 })
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	rx := multi("m", 12, 1)
	r.post(rx)
	r.send(one, sent{data: []byte("abcd"), part: 2})
	if r.send(two, plain("ef"), plain("ghi"), tagged(1, "nowhere")) {
		t.Fatal("admitted")
	}
	r.send(two, plain("jkl"))
	r.more(one, []byte("cd"))
	r.want("m:2", "m:3", "m:3", "m:4 released")
	same(t, rx.Buffers[0], "abcdefghijkl")
}

func TestMultiReceiveWhoseMessageIsLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(r *rig, one, two *Inflow)
		want  []string
		bytes string
	}{
		{"the last one: its bytes are free again", func(r *rig, one, two *Inflow) {
			two.Close()
			r.more(one, []byte("bcd"))
			r.send(one, plain("xyz"), plain("123"))
		}, []string{"m:4", "m:3", "m:3 released"}, "abcdxyz123"},
		{"one before others: a hole is left", func(r *rig, one, two *Inflow) {
			one.Close()
			r.more(two, []byte("fgh"))
		}, []string{"m:4"}, "a\x00\x00\x00efgh"},
		{"all, the first one first: everything is free", func(r *rig, one, two *Inflow) {
			one.Close()
			two.Close()
			r.send(r.q.NewInflow(peer(3)), plain("0123456789"))
		}, []string{"m:10 released"}, "0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
			rx := multi("m", 10, 2)
			r.post(rx)
			r.send(one, sent{data: []byte("abcd"), part: 1})
			r.send(two, sent{data: []byte("efgh"), part: 1})
			c.then(r, one, two)
			r.check()
			r.want(c.want...)
			same(t, rx.Buffers[0], c.bytes)
		})
	}
}

// Two messages behind one that is complete in the end are lost, the first one first: the
// hole and what was behind it are free again.
func TestMultiReceiveWithoutHolesInTheEnd(t *testing.T) {
	r := newRig(t)
	one, two, three := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2)), r.q.NewInflow(peer(3))
	rx := multi("m", 12, 1)
	r.post(rx)
	for _, in := range []*Inflow{one, two, three} {
		r.send(in, sent{data: []byte("abc"), part: 1})
	}
	two.Close()
	three.Close()
	r.more(one, []byte("bc"))
	r.send(one, plain("defghijkl"))
	r.want("m:3", "m:9 released")
	same(t, rx.Buffers[0], "abcdefghijkl")
}

// A place that a lost message returns is for a message that is held: no reader of
// completions may come by.
func TestPlaceOfALostMessageIsForAHeldOne(t *testing.T) {
	r := newRig(t, func(_ *Config, s *places) { s.free = 3 })
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	t1 := multi("t", 64, 1)
	t1.Tagged = true
	r.post(t1)
	r.send(one, sent{Message: wire.Message{Tagged: true}, data: text(5), part: 1}) // two places
	r.send(two, plain("a"), plain("bb"))
	r.post(multi("m", 64, 1)) // the third one
	r.want()
	one.Close()
	r.check()
	r.want("m:1")
	r.want("m:2")
}

// late is a sink whose first place comes back just when it is asked for.
type late struct {
	places
	asked bool
}

func (s *late) Take() bool {
	if !s.asked && s.free == 0 {
		s.asked, s.free = true, 1
		return false
	}
	return s.places.Take()
}

// A reader that comes between the question for a place and the note that one is missing
// does not know of it, so the question is asked again.
func TestPlaceThatComesBackInTime(t *testing.T) {
	sink := &late{places: places{free: 1}}
	q := New(Config{Receives: 1, Sink: sink})
	rx := multi("m", 10, 1)
	if err := q.Post(&rx); err != nil {
		t.Fatal(err)
	}
	in := q.NewInflow(peer(1))
	in.Begin()
	if !plain("a").begin(in) {
		t.Error("refused, and nobody will say that there is a place")
	}
	in.End()
	if err := q.Check(); err != nil {
		t.Error(err)
	}
}

// The buffer is full but for a hole, and the last message that was going in is lost: a
// completion without a message releases the buffer.
func TestMultiReceiveThatIsSpent(t *testing.T) {
	r := newRig(t)
	one, two := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2))
	r.post(multi("m", 10, 2))
	r.send(one, sent{data: []byte("abcde"), part: 1})
	r.send(two, plain("fghij"))
	r.want("m:5")
	one.Close()
	r.want("m:0 spent released")
	if u := r.q.Usage(); u.Places != 0 || u.Filling != 0 || u.Posted != 0 {
		t.Errorf("%+v", u)
	}
}

// Without a place for another completion, a message for a multi-receive is refused, and
// held ones wait; a reader of completions brings both on.
func TestMultiReceiveWantsAPlaceForEachMessage(t *testing.T) {
	r := newRig(t, func(_ *Config, s *places) { s.free = 2 })
	in := r.q.NewInflow(peer(1))
	r.post(multi("m", 10, 1))
	if r.send(in, plain("a"), plain("b")) {
		t.Fatal("two messages and the receive itself have two places")
	}
	if u := r.q.Usage(); u.Places != 1 || r.sink.free != 0 {
		t.Fatalf("%+v, %d places free, want that of the receive taken, and that of the first message filled", u, r.sink.free)
	}
	for range 2 {
		if r.send(in, plain("b")) {
			t.Fatal("a message was admitted without a place")
		}
	}
	if r.rooms != 0 {
		t.Fatalf("Room was called %d times, and nothing made room: the message would be tried for ever", r.rooms)
	}
	r.want("m:1")
	if r.rooms != 1 || !r.send(in, plain("b")) {
		t.Fatalf("Room called %d times, or refused with a place", r.rooms)
	}
	r.want("m:1")
}

// What a multi-receive had no place for can be held when the buffer is full. A refusal
// calls for no room: it would call itself, forever.
func TestFullMultiReceiveMakesRoom(t *testing.T) {
	r := newRig(t, func(_ *Config, s *places) { s.free = 2 })
	one, two, three := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2)), r.q.NewInflow(peer(3))
	r.post(multi("m", 10, 5))
	r.send(one, sent{data: []byte("abc"), part: 1})
	for range 3 {
		if r.send(two, plain("x")) || r.rooms != 0 {
			t.Fatalf("admitted without a place, or Room called (%d times)", r.rooms)
		}
	}
	r.send(three, plain("defg")) // leaves too little: it needs no place of its own
	if r.rooms != 1 || !r.send(two, plain("x")) {
		t.Fatalf("Room called %d times, or refused though it can be held", r.rooms)
	}
	r.more(one, []byte("bc"))
	r.want("m:4", "m:3 released")
}

func TestHeldMessagesWaitForPlacesOfAMultiReceive(t *testing.T) {
	r := newRig(t, func(_ *Config, s *places) { s.free = 2 })
	in := r.q.NewInflow(peer(1))
	r.send(in, plain("a"), plain("b"), plain("c"))
	r.post(multi("m", 10, 1))
	late := anySource("late", 10)
	if err := r.q.Post(&late); !errors.Is(err, ErrFull) {
		t.Fatalf("%v: a later receive may not take what the multi-receive waits to take", err)
	}
	if r.send(in, plain("d")) {
		t.Fatal("a message may not overtake those that are held")
	}
	for range 3 { // each that is read makes room for the next one
		r.want("m:1")
	}
	if r.rooms != 1 || !r.send(in, plain("d")) {
		t.Fatalf("Room called %d times, or refused", r.rooms)
	}
	r.want("m:1")
	if u := r.q.Usage(); u.Held != 0 || u.Places != 1 {
		t.Errorf("%+v", u)
	}
}

// A receive whose message is lost waits again. It does not take what an older
// multi-receive waits to take, until that is full or cancelled.
func TestOlderMultiReceiveThatIsBehindGoesFirst(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		r := newRig(t, func(_ *Config, s *places) { s.free = 3 })
		one, two, three := r.q.NewInflow(peer(1)), r.q.NewInflow(peer(2)), r.q.NewInflow(peer(3))
		m := byTag("m", 0, ^uint64(0))
		m.Multi, m.MinFree = true, 60 // of 64
		r.post(m)
		r.send(three, sent{Message: wire.Message{Tagged: true}, data: text(5), part: 1}) // m is full
		r.post(byTag("single", 2, 0))
		r.post(byTag("last place", 3, 0))
		r.send(one, sent{Message: wire.Message{Tagged: true, Tag: 2}, data: text(5), part: 1}) // into single
		r.send(two, tagged(2, "a"), tagged(2, "bb"), tagged(2, "cc"), tagged(2, "dddd"))
		three.Close() // m has room again, and no place
		r.check()
		one.Close() // single waits again, behind m
		r.check()
		r.want()
		if cancel {
			r.q.Cancel("m")
			r.want("m:0 cancelled released", "single:1")
			continue
		}
		r.q.Cancel("last place")
		r.want("last place:0 cancelled")
		r.want("m:1")
		r.want("m:2", "m:2 released", "single:4")
	}
}

func TestBadMultiReceives(t *testing.T) {
	r := newRig(t)
	claim := multi("m", 10, 1)
	claim.Claim = true
	two := multi("m", 10, 1)
	two.Buffers = append(two.Buffers, make([]byte, 10))
	for _, rx := range []Receive{claim, two, multi("m", 10, 11), multi("m", 0, 0), {Multi: true}} {
		if err := r.q.Post(&rx); !errors.Is(err, ErrMulti) {
			t.Errorf("%+v: %v", rx, err)
		}
	}
	r.check()
}
