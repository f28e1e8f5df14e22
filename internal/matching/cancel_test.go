// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestCancel(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(byTag("same", 1, 0))
	r.post(anySource("same", 16))
	r.post(anySource("other", 16))
	if r.q.Cancel("none") {
		t.Error("nothing was posted with this context")
	}
	if !r.q.Cancel("same") {
		t.Fatal("not cancelled")
	}
	if d := r.want("same:0 cancelled"); !d[0].Tagged {
		t.Error("not the oldest one was cancelled")
	}
	if !r.q.Cancel("same") || r.q.Cancel("same") {
		t.Error("the second one was not cancelled, or a third one was")
	}
	r.send(in, plain("1"))
	r.want("same:0 cancelled", "other:1")
}

func TestCancelOfAReceiveIntoWhichAMessageIsGoing(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	r.post(anySource("single", 16))
	r.send(in, sent{data: []byte("abc"), part: 1})
	m := multi("multi", 16, 1)
	m.Tagged = true
	r.post(m)
	other := r.q.NewInflow(peer(2))
	r.send(other, sent{Message: wire.Message{Tagged: true}, data: []byte("defg"), part: 1})
	if r.q.Cancel("single") || r.q.Cancel("multi") {
		t.Error("cancelled though a message is going in")
	}
	r.more(in, []byte("bc"))
	r.more(other, []byte("efg"))
	if !r.q.Cancel("multi") {
		t.Error("not cancelled between two messages")
	}
	r.want("single:3", "multi:4", "multi:0 cancelled released")
}

func TestClose(t *testing.T) {
	r := newRig(t)
	var ins []*Inflow
	for i := range 6 {
		ins = append(ins, r.q.NewInflow(peer(i)))
	}
	r.post(anySource("single", 100))
	r.send(ins[0], sent{data: text(10), part: 1})
	r.post(multi("full", 20, 1))
	r.send(ins[1], sent{data: text(10), part: 1})
	r.send(ins[2], sent{data: text(10), part: 1})
	r.post(multi("multi", 20, 1))
	r.send(ins[3], sent{data: text(10), part: 1})
	r.post(byTag("waits", 1, 0))
	r.send(ins[4], sent{Message: wire.Message{Tagged: true}, data: text(5000), part: 3000})
	r.send(ins[5], sent{Message: wire.Message{Tagged: true, Tag: 2}, data: text(5)})
	r.q.Peek(&Match{Tagged: true, Tag: 2, AnySource: true}, Claim, "claimed")
	if r.send(ins[5], sent{Message: wire.Message{Tagged: true, Tag: 3}, data: text(5 * ChunkSize)}) {
		t.Fatal("admitted beyond the budget")
	}
	r.q.Close()
	r.q.Close()
	r.check()
	r.want("single:0 cancelled", "full:0 cancelled released", "multi:0 cancelled released", "waits:0 cancelled")
	if u := r.q.Usage(); u != (Usage{Made: u.Made, Inflows: 6}) || r.sink.free != 16 {
		t.Errorf("%+v, %d places", u, r.sink.free)
	}
	rx := anySource("x", 1)
	if err := r.q.Post(&rx); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	r.more(ins[4], text(5000)[3000:]) // what has begun is dropped to its end
	for i, in := range ins {
		if i < 4 {
			r.more(in, text(10)[1:])
		}
		if r.send(in, plain("x")) {
			t.Error("admitted")
		}
		in.Close()
		in.Close()
	}
	r.want()
	if u := r.q.Usage(); u.Inflows != 0 || r.rooms != 0 {
		t.Errorf("%+v, Room called %d times", u, r.rooms)
	}
}
