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
		return fmt.Errorf("engine: %d sessions not settled and %d packets not flushed after a step",
			len(e.unsettled), e.sent)
	}
	return errors.Join(e.table.check(), e.checkDirty(), e.checkWaiters(), e.checkTargets(), e.checkConns(),
		e.checkFlights(), e.checkQuiets())
}

// check makes sure that every entry is found where its slot says.
func (t *table) check() error {
	for i, x := range t.all {
		s := x.place()
		if s.pos != i || t.find(s.id) != x {
			return fmt.Errorf("table: entry %d has the slot %+v, but is not found by it", i, *s)
		}
	}
	for _, i := range t.free {
		if t.byIndex[i] != nil {
			return fmt.Errorf("table: index %d is on the free list, but in use", i)
		}
	}
	if len(t.free)+len(t.all) != len(t.byIndex) {
		return fmt.Errorf("table: %d indexes are free and %d in use, want %d together", len(t.free), len(t.all),
			len(t.byIndex))
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
		if listed != (n == 1) || n > 1 || o.due() && !listed && !e.mail.Load() { // or a call is to list it
			return fmt.Errorf("engine: a session (%T) is on the list of those with frames to send %d times (it has "+
				"some: %t; it is marked as listed: %t)", o, n, o.due(), listed)
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
		case *Inquiry:
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

// checkWaiters makes sure that the list of those that wait for room is that of the
// sessions which are marked so.
func (e *Engine) checkWaiters() error {
	listed := map[*target]bool{}
	for _, t := range e.waiters.all {
		if t.slot.id == 0 || !t.waits || listed[t] {
			return fmt.Errorf("engine: a session that has ended (%t) waits for room (%t), or is listed twice (%t)",
				t.slot.id == 0, t.waits, listed[t])
		}
		listed[t] = true
	}
	for _, x := range e.table.all {
		if t, ok := x.(*target); ok && t.waits && !listed[t] {
			return fmt.Errorf("engine: session %#x waits for room, but is not on the list", uint32(t.slot.id))
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
			return fmt.Errorf("engine: session %#x is not a session of its pair, or the pair belongs to another queue",
				uint32(t.slot.id))
		}
		if e.parties[t.party.key] != t.party {
			return fmt.Errorf("engine: the party %v of session %#x is not known", t.party.key, uint32(t.slot.id))
		}
		sessions[t.party.key]++
		accepted++
	}
	if accepted != e.accepted || len(sessions) != len(e.parties) {
		return fmt.Errorf("engine: the table has %d accepted sessions of %d parties, but the counts are %d and %d",
			accepted, len(sessions), e.accepted, len(e.parties))
	}
	sizes, most := make(map[int]int), 0
	for key, n := range sessions {
		if e.parties[key].sessions != n {
			return fmt.Errorf("engine: party %v has %d sessions, but its count is %d", key, n, e.parties[key].sessions)
		}
		sizes[n]++
		most = max(most, n)
	}
	if most != e.most {
		return fmt.Errorf("engine: the greediest party has %d sessions, but the recorded number is %d", most, e.most)
	}
	for n := 1; n < len(e.sizes); n++ {
		if e.sizes[n] != sizes[n] {
			return fmt.Errorf("engine: %d parties have %d sessions each, but the count of such parties is %d", sizes[n],
				n, e.sizes[n])
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
		return fmt.Errorf("engine: %d request buffers are lent, but the sessions have %d", n, lent)
	}
	for at, c := range e.begun {
		if c.slot.id == 0 || c.atTarget() != at {
			return fmt.Errorf("engine: session %v, which a target has begun, is not in the table", at)
		}
	}
	return nil
}

// checkFlights makes sure that every operation that was taken lies where something
// will complete it: in a frame, in the queue of a remote, or among its watches. So none
// is left when the sessions and queues are gone, which Exhaust relies on.
func (e *Engine) checkFlights() error {
	fragments := map[*flight]uint32{} // and watches, by operation
	following := map[*Ring]int{}
	remotes := map[*remote]bool{}
	for _, r := range e.ready {
		remotes[r] = true
	}
	for r := range e.starved {
		remotes[r] = true
		if r.listed || !r.starved() {
			return errors.New(
				"engine: a peer with something to pack is among those that wait for the next part of an operation")
		}
	}
	for _, x := range e.table.all {
		if c, ok := x.(*conn); ok {
			remotes[c.r] = true
			if err := c.countFragments(fragments, following); err != nil {
				return err
			}
			for _, t := range c.tickets {
				if t.f != nil {
					fragments[t.f]++
				}
			}
		}
	}
	for r := range remotes {
		for f := r.head; f != nil; f = f.next {
			fragments[f] += 0
		}
		for _, f := range r.watches {
			fragments[f]++
		}
	}
	for o := range e.origins() {
		for _, x := range o.quiets {
			fragments[x.f] += 0
		}
	}
	taken := map[*Ring]int{}
	for f, n := range fragments {
		if f.pending != n {
			return fmt.Errorf("engine: an operation counts %d fragments in flight, but frames and watches have %d",
				f.pending, n)
		}
		taken[f.ring]++
	}
	for _, r := range e.rings {
		if n := r.under(); n != taken[r] {
			return fmt.Errorf("engine: %d operations of a ring are under way, but frames, queues and watches have %d",
				n, taken[r])
		}
		if r.following != following[r] || r.following > len(r.free) {
			return fmt.Errorf(
				"engine: a ring counts %d followers and has %d free flights, but frames have %d followers", r.following,
				len(r.free), following[r])
		}
	}
	return nil
}

// countFragments adds the session's fragments to the counts of their operations, and
// their followers to those of their rings.
func (c *conn) countFragments(fragments map[*flight]uint32, following map[*Ring]int) error {
	frames := 0
	for i, g := range append(c.frames[:], c.stage.cargo) {
		if g == nil {
			continue
		}
		if i < len(c.frames) {
			frames++
		}
		n := 0
		for _, s := range g.frags {
			fragments[s.f]++
			if s.followers > 0 {
				n += int(s.followers)
				following[s.f.ring] += int(s.followers)
			}
		}
		if n != len(g.followers) {
			return fmt.Errorf("engine: session %#x has %d followers in a frame, but the fragments have %d",
				uint32(c.slot.id), len(g.followers), n)
		}
	}
	if waits := c.ini.InFlight(); frames != waits {
		return fmt.Errorf("engine: session %#x waits for the answers to %d frames, but knows the operations of %d",
			uint32(c.slot.id), waits, frames)
	}
	return nil
}

// checkStage looks at the frame that a session is filling: no operation may have
// overtaken those in it, and something must be going to send it.
func (c *conn) checkStage() error {
	s := &c.stage
	switch {
	case (s.buf == nil) != (s.cargo == nil) || s.buf == nil && s.leader != nil:
		return fmt.Errorf("engine: session %#x has a frame without a list of operations, or the other way round",
			uint32(c.slot.id))
	case s.buf == nil:
		return nil
	case c.spent() || c.r.conn != c || !c.r.listed:
		return fmt.Errorf("engine: session %#x has a frame, but nothing is going to send it", uint32(c.slot.id))
	case !s.simple || s.w.Ops() == 0 || s.w.Ops() != s.cargo.ops():
		return fmt.Errorf("engine: session %#x keeps a frame of %d records for %d operations, all of them simple: "+
			"%t; want as many of both, at least one, and simple ones only",
			uint32(c.slot.id), s.w.Ops(), s.cargo.ops(), s.simple)
	case s.leader != nil && s.leader != &s.cargo.frags[len(s.cargo.frags)-1]:
		return fmt.Errorf("engine: session %#x would add followers to a fragment that is not its frame's last",
			uint32(c.slot.id))
	}
	return nil
}
