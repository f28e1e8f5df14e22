// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/json"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// move has another host take the place of the present one, to which everything goes as
// text, and returns the sessions there.
func (p *post) move(sessions ...session.Inflow) (moved []session.Inflow) {
	p.Helper()
	var states []session.InflowState
	for _, in := range sessions {
		states = append(states, in.(session.MobileInflow).State())
	}
	before := p.host.Export()
	before.Credits = map[uint16]matching.Room{1: p.host.Room(&p.credit)}
	text, err := json.Marshal(states)
	if err != nil {
		p.Fatal(err)
	}
	states = nil
	if err := json.Unmarshal(text, &states); err != nil {
		p.Fatal(err)
	}
	p.host = NewArrivals(p.theirs, p.host.doorbell, p.host.turn)
	p.host.Restore(&before)
	p.credit = Credit{}
	p.host.Grant(&p.credit, before.Credits[1])
	for _, s := range states {
		in := p.host.NewInflow(1, &p.credit, wire.Addr{})
		in.(session.MobileInflow).Restore(s)
		moved = append(moved, in)
	}
	return moved
}

// Another host goes on with messages that are announced, that are admitted, and that come
// by credit, and the guest learns from it when their sessions end.
func TestCreditMoves(t *testing.T) {
	p := newPost(t, 2, matching.ChunkSize)
	held, fetched := p.host.NewInflow(1, &p.credit, wire.Addr{}), p.host.NewInflow(1, &p.credit, wire.Addr{})
	p.offer(held, 5)
	if p.read(); p.hear() != 1 || !p.offer(held, 5) {
		t.Fatal("there is room")
	}
	all := p.move(held, fetched)
	held, fetched = all[0], all[1]
	if p.credit.room != (matching.Room{Messages: 1, Bytes: matching.ChunkSize}) || !p.offer(held, 6) {
		t.Fatalf("credit %+v is left", p.credit)
	}
	m := wire.Message{Begins: true, Tagged: true, Match: true, Length: 8,
		Atomic: wire.TaggedAtomic{Form: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint64), Count: 1}}
	fetch := func() bool {
		fetched.Begin()
		defer fetched.End()
		return fetched.Admit(&m)
	}
	if fetch() || p.offer(held, 7) {
		t.Fatal("admitted by nobody")
	}
	all = p.move(held, fetched)
	held, fetched = all[0], all[1]
	if err := p.queue.Post(&matching.Receive{Match: matching.Match{Tagged: true, AnySource: true}, Buf: []byte("original")}); err != nil {
		t.Fatal(err)
	}
	if p.read(); p.hear() != 1 || p.credit.waiting != 1 {
		t.Fatalf("the atomic has a receive, the message no room: %+v", p.credit)
	}
	all = p.move(held, fetched)
	held, fetched = all[0], all[1]
	result := make([]byte, 8)
	if !fetch() {
		t.Fatal("the atomic was admitted")
	}
	fetched.Begin()
	if status := fetched.Combine(&m, result); status != wire.StatusOK || string(result) != "original" {
		t.Errorf("%v, %q", status, result)
	}
	fetched.End()
	if p.read(); len(p.done) != 1 || !p.done[0].Atomic {
		t.Fatalf("%+v", p.done)
	}
	p.done = nil
	p.take(5)
	if p.read(); p.hear() != 1 || !p.offer(held, 7) || p.credit.waiting != 0 {
		t.Fatalf("there is room by now: %+v", p.credit)
	}
	p.read()
	p.take(6)
	p.take(7)
	held.Close()
	fetched.Close()
	if p.read(); len(p.guest.in.sessions) != 0 {
		t.Errorf("%d sessions are left", len(p.guest.in.sessions))
	}
}
