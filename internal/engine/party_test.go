// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The cost of a hello when the table is full does not depend on the size of the table,
// since strangers decide how often it is paid.
func TestRoomLooksAtFew(t *testing.T) {
	c := newCable(t, session.Config{})
	e := c.nodes[1].eng[0]
	for i := range 5000 {
		c.stranger(i)
	}
	c.idle(2 * time.Second) // now its sessions may go, since they have never been used
	for i := range 3000 {
		before := e.hand
		e.lived += ownPace
		c.stranger(5000 + i)
		n := e.hand - before
		if n < 0 {
			n += len(e.table.all)
		}
		if n > candidates {
			t.Fatalf("%d sessions were looked at for one to go, want at most %d", n, candidates)
		}
	}
	if n := e.count[SessionsEvicted]; n != 3000 {
		t.Errorf("%d sessions went, want 3000", n)
	}
	p := e.party(&wire.Source{Remote: wire.MAC{2, 9, 9, 9, 9, 9}})
	if e.most != p.sessions || e.most != e.accepted {
		t.Errorf("the greediest party has %d sessions of %d, counted are %d", p.sessions, e.accepted, e.most)
	}
}

// One stranger that asks for sessions without end takes the places of its own sessions
// alone, and not many a second. A session of another source stays, though it has executed
// nothing and is silent.
func TestGreediestTakesItsOwn(t *testing.T) {
	c := newCable(t, session.Config{})
	e := c.nodes[1].eng[0]
	quiet := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Verb, op.Flags = c.peer(ethernet()).ID(), quiet, VerbConnect, 0
	op.Publish()
	c.done(quiet)
	for i := range 5000 {
		c.stranger(i)
	}
	c.idle(2 * time.Second) // now any session may go that has executed nothing
	const hellos = 10_000
	for i := range hellos {
		e.lived += int64(time.Second) / hellos
		c.stranger(5000 + i)
	}
	if n := e.count[SessionsEvicted]; n < 90 || n > 101 {
		t.Errorf("%d sessions went for %d hellos within a second, want 100", n, hellos)
	}
	for i, x := range e.table.all {
		if tgt, ok := x.(*target); ok && tgt.from.MAC == worldMACs[0] {
			return
		} else if i == len(e.table.all)-1 {
			t.Error("the session of another source has gone")
		}
	}
}
