// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What the guest was asked about is what comes when it has admitted it. A peer that sends
// something else in its place waits, and so does its session; also if another host goes
// on with it in between.
func TestAnotherInItsPlace(t *testing.T) {
	asked := wire.Message{Begins: true, Tagged: true, Match: true, Length: 16, Tag: 5, Data: 6, HasData: true, Source: 7, Part: make([]byte, 16),
		Atomic: wire.TaggedAtomic{Form: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 2, Offset: 8}}
	others := map[string]func(*wire.Message){
		"length": func(m *wire.Message) { m.Length = 8 }, "tag": func(m *wire.Message) { m.Tag++ }, "data": func(m *wire.Message) { m.Data++ },
		"no data": func(m *wire.Message) { m.HasData = false }, "untagged": func(m *wire.Message) { m.Tagged = false }, "source": func(m *wire.Message) { m.Source++ },
		"plain": func(m *wire.Message) { m.Atomic = wire.TaggedAtomic{} }, "form": func(m *wire.Message) { m.Atomic.Form = wire.VerbAtomic },
		"op": func(m *wire.Message) { m.Atomic.Op++ }, "datatype": func(m *wire.Message) { m.Atomic.Datatype = uint8(atomic.Uint8) },
		"count": func(m *wire.Message) { m.Atomic.Count = 1 }, "offset": func(m *wire.Message) { m.Atomic.Offset = 0 },
	}
	for _, moves := range []bool{false, true} {
		p := newPost(t, 4, 0)
		in := p.host.NewInflow(1, &p.credit, wire.Addr{})
		admit := func(m wire.Message) bool {
			in.Begin()
			defer in.End()
			return in.Admit(&m)
		}
		if admit(asked) {
			t.Fatal("admitted by nobody")
		}
		buf := make([]byte, 24)
		if err := p.queue.Post(&matching.Receive{Match: matching.Match{Tagged: true, Tag: 5, AnySource: true}, Buf: buf}); err != nil {
			t.Fatal(err)
		}
		if p.read(); p.hear() != 1 {
			t.Fatal("not admitted")
		}
		if moves {
			in = p.move(in)[0]
		}
		for name, change := range others {
			other := asked
			if change(&other); admit(other) {
				t.Errorf("moved %t: admitted another message: %s", moves, name)
			}
		}
		if !admit(asked) {
			t.Fatal("what the guest has admitted is not")
		}
		result := make([]byte, 16)
		in.Begin()
		if status := in.Combine(&asked, result); status != wire.StatusOK {
			t.Error(status)
		}
		in.End()
		if p.read(); len(p.done) != 1 || p.done[0].Tag != 5 {
			t.Errorf("%+v", p.done)
		}
	}
}
