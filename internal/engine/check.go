// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Check returns the first contradiction in the engine's own records, for tests: it is nil
// unless there is a bug. It looks at every session. Call it between two steps; engine's
// thread only.
func (e *Engine) Check() error {
	if len(e.unsettled) > 0 || e.sent > 0 {
		return fmt.Errorf("engine: %d sessions not settled and %d packets not flushed after a step", len(e.unsettled), e.sent)
	}
	return errors.Join(e.table.check(), e.checkDirty(), e.checkTargets(), e.checkConns())
}

// check makes sure that every entry is found where its slot says.
func (t *table) check() error {
	for i, x := range t.all {
		s := x.place()
		if s.pos != i || t.find(s.id) != x {
			return fmt.Errorf("table: entry %d has the slot %+v, and is not found by it", i, *s)
		}
	}
	for _, i := range t.free {
		if t.byIndex[i] != nil {
			return fmt.Errorf("table: index %d is free, and in use", i)
		}
	}
	if len(t.free)+len(t.all) != len(t.byIndex) {
		return fmt.Errorf("table: %d indexes are free and %d in use, of %d", len(t.free), len(t.all), len(t.byIndex))
	}
	return nil
}

// checkDirty makes sure that every session with frames to send is on the dirty list once,
// and that every session on the list is marked as listed.
func (e *Engine) checkDirty() error {
	times := map[outgoing]int{}
	for _, o := range e.dirty {
		times[o]++
	}
	look := func(o outgoing, listed bool) error {
		n := times[o]
		delete(times, o)
		if listed != (n == 1) || n > 1 || o.due() && !listed {
			return fmt.Errorf("engine: a session (%T) has frames to send: %t, is listed: %t, and on the list %d times", o, o.due(), listed, n)
		}
		return nil
	}
	for _, x := range e.table.all {
		var err error
		switch x := x.(type) {
		case *conn:
			err = look(x, x.dirty)
		case *target:
			err = look(x, x.listed)
		}
		if err != nil {
			return err
		}
	}
	for o := range times { // those that have left the table already
		if err := look(o, true); err != nil {
			return err
		}
	}
	return nil
}

// checkTargets recounts the accepted sessions, and makes sure that their pairs know them.
func (e *Engine) checkTargets() error {
	sessions, accepted := map[session.Party]int{}, 0
	for _, x := range e.table.all {
		t, ok := x.(*target)
		if !ok {
			continue
		}
		if p := t.pair; p.owner != e || p.current != t && p.former != t {
			return fmt.Errorf("engine: session %#x is not one of its pair's, or of another queue", uint32(t.slot.id))
		}
		if e.parties[t.party.key] != t.party {
			return fmt.Errorf("engine: the party %v of session %#x is not known", t.party.key, uint32(t.slot.id))
		}
		sessions[t.party.key]++
		accepted++
	}
	if accepted != e.accepted || len(sessions) != len(e.parties) {
		return fmt.Errorf("engine: %d accepted sessions of %d parties, counted are %d of %d", accepted, len(sessions), e.accepted, len(e.parties))
	}
	sizes, most := make(map[int]int), 0
	for key, n := range sessions {
		if e.parties[key].sessions != n {
			return fmt.Errorf("engine: party %v has %d sessions, counted are %d", key, n, e.parties[key].sessions)
		}
		sizes[n]++
		most = max(most, n)
	}
	if most != e.most {
		return fmt.Errorf("engine: the greediest party has %d sessions, counted are %d", most, e.most)
	}
	for n := 1; n < len(e.sizes); n++ {
		if e.sizes[n] != sizes[n] {
			return fmt.Errorf("engine: %d parties have %d sessions, counted are %d", sizes[n], n, e.sizes[n])
		}
	}
	return nil
}

// checkConns looks at the sessions that this engine opened, and at their buffers.
func (e *Engine) checkConns() error {
	lent := 0
	for _, x := range e.table.all {
		if c, ok := x.(*conn); ok {
			if err := c.ini.Check(); err != nil {
				return err
			}
			lent += c.ini.InFlight()
			if c.stage.buf != nil {
				lent++
			}
			if err := c.checkStage(); err != nil {
				return err
			}
		}
	}
	if n := e.reqs.Lent(); n != lent {
		return fmt.Errorf("engine: %d requests are lent, of which sessions have %d", n, lent)
	}
	for at, c := range e.begun {
		if c.slot.id == 0 || c.atTarget() != at {
			return fmt.Errorf("engine: session %v, which a target has begun, is not in the table", at)
		}
	}
	return nil
}

// checkStage looks at the frame that a session is filling: no operation may have
// overtaken those in it, and something must be going to send it.
func (c *conn) checkStage() error {
	s := &c.stage
	switch {
	case s.buf == nil && len(s.segs) > 0:
		return fmt.Errorf("engine: %d operations are in a frame that session %#x does not have", len(s.segs), uint32(c.slot.id))
	case s.buf == nil:
		return nil
	case c.over() || c.r.conn != c || !c.r.listed:
		return fmt.Errorf("engine: session %#x has a frame that nobody will send", uint32(c.slot.id))
	case !s.simple || s.w.Ops() == 0 || s.w.Ops() != len(s.segs):
		return fmt.Errorf("engine: session %#x keeps a frame of %d records for %d operations, simple ones: %t",
			uint32(c.slot.id), s.w.Ops(), len(s.segs), s.simple)
	}
	return nil
}
