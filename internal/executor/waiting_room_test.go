// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A session, a party and an engine each have room for operations that wait. A session
// that has filled its own room takes nothing from others, and the end of the sessions
// frees all of it.
func TestRoomToWait(t *testing.T) {
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(party byte) *Session {
		p := params()
		p.Party = session.Party{MAC: wire.MAC{party}}
		return x.Begin(1, p, nil)
	}
	// fill has operations wait until there is no room, and returns how many did.
	fill := func(s *Session) (n int) {
		for ; s.MayWait(); n++ {
			s.Park(&waiting.Note{}, uint8(n), wire.NoLimit)
		}
		return n
	}
	var all []*Session
	for party := range byte(mostWaiting / mostOfParty) {
		for range mostOfParty / mostWaitingOfOne {
			s := begin(party)
			if n := fill(s); n != mostWaitingOfOne {
				t.Fatalf("%d wait in a session, want %d", n, mostWaitingOfOne)
			}
			all = append(all, s)
		}
		s := begin(party)
		if n := fill(s); n != 0 {
			t.Errorf("party %d has %d more than %d that wait", party, n, mostOfParty)
		}
		all = append(all, s)
	}
	s := begin(99)
	if n := fill(s); n != 0 || x.Usage().Waiting != mostWaiting {
		t.Errorf("%d more wait, %d in all, want %d", n, x.Usage().Waiting, mostWaiting)
	}
	all[0].Release()
	if n := fill(s); n != mostWaitingOfOne {
		t.Errorf("%d wait in the place of those of a session that has ended, want %d", n, mostWaitingOfOne)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	for _, s := range append(all, s) {
		s.Release()
	}
	if u := x.Usage(); u.Waiting+u.Parties != 0 {
		t.Errorf("after the end: %+v", u)
	}
}
