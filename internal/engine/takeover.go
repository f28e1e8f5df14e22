// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The sessions that peers have with an engine can go on in another one, of another
// process: with their ids, epochs and keys, and above all with what has run and the
// answers to it. Peers see a pause, in which frames get lost. The order is: Pause in all
// engines of the group, Export in each, ExportIdle in one. The new engines, of a group of
// the same life, are paused from the beginning, Import, and then Resume. The sessions
// that an engine has begun itself do not move: targets know by the serial number of their
// origin that later ones follow (see Origin.Assume).

// Mobile is a Served with which another process can go on.
type Mobile interface {
	Served
	// State returns everything that the executor knows of the session.
	State(now int64) ([]byte, error)
	// Restore makes an executor that has just begun go on from a state of another one. If
	// there is an error, the session can only be released.
	Restore(state []byte, now int64) error
	// Detach is Release for a session that continues elsewhere.
	Detach()
}

// PairState is what targets know of a pair of endpoints, and the sessions of the pair.
type PairState struct {
	Origin   uint64
	Endpoint uint16
	Serial   uint32
	Last     wire.Resume
	Kept     int64
	Idle     int64        // nanoseconds since it lost the last session, if it has none
	Current  *TargetState `json:",omitempty"`
	Former   *TargetState `json:",omitempty"`
}

// TargetState is what an engine knows of a session that it has accepted.
type TargetState struct {
	ID       wire.SessionID
	Nonce    uint64
	Epoch    uint32
	Remote   uint32
	Link     wire.Link // to the initiator
	Features wire.Features
	Frame    int // bytes of the longest frame
	Keep     int64
	From     wire.Addr
	Party    session.Party
	Key      uint64          `json:",omitempty"` // digest of the key that the initiator has proven
	Ended    bool            `json:",omitempty"`
	Waits    bool            `json:",omitempty"`
	Midway   bool            `json:",omitempty"`
	Served   json.RawMessage // of Mobile
}

// Pause makes the engine take no packets, until Resume: no session moves. Calls and
// posted operations are taken, and frames leave. Engine's thread only, or before the
// first step.
func (e *Engine) Pause() { e.paused = true }

// Resume undoes Pause. Engine's thread only.
func (e *Engine) Resume() {
	e.paused = false
	for _, t := range e.orphans {
		if t.slot.id != 0 {
			t.finish(wire.ResetClosed)
		}
	}
	for _, in := range e.spared {
		in.Close()
	}
	e.orphans, e.spared = nil, nil
	e.mail.Store(true) // the inbox was left alone
}

// Life names the life of the engine's process to peers.
func (e *Engine) Life() uint64 { return e.cfg.Life }

// CanMove returns nil if another process can go on with every session that peers have
// with the engine. Engine's thread only.
func (e *Engine) CanMove() error {
	for _, x := range e.table.all {
		if t, ok := x.(*target); ok {
			if _, can := t.s.(Mobile); !can {
				return errImmobile
			}
		}
	}
	return nil
}

var errImmobile = errors.New("a session has an executor that cannot move to another process")

// Export returns the sessions that peers have with the engine, which has to be paused.
// They are its own no longer, unless there is an error. Engine's thread only.
func (e *Engine) Export() ([]PairState, error) {
	e.look()
	var all []PairState
	seen := map[*pair]bool{}
	for _, x := range e.table.snapshot() {
		t, ok := x.(*target)
		if ok && t.dying {
			t.remove(t.why) // the initiator has been told, or will ask what ran
		}
		if !ok || t.slot.id == 0 || seen[t.pair] {
			continue
		}
		seen[t.pair] = true
		s, err := t.pair.state()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	e.DetachTargets()
	return all, nil
}

// ExportIdle returns the pairs of the group that have no session, beginning with the one
// that has had none for longest. The engines are paused, and have exported. Engine's
// thread only.
func (e *Engine) ExportIdle() (all []PairState) {
	ps := e.pairs
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for x := ps.idle.Front(); x != nil; x = x.Next() {
		p := x.Value.(*pair)
		all = append(all, PairState{Origin: p.key.origin, Endpoint: p.key.endpoint, Serial: p.serial, Last: p.last,
			Kept: p.kept, Idle: e.now - p.since})
	}
	return all
}

// DetachTargets forgets the sessions that peers have with the engine, without telling
// them, because another engine continues the sessions. Engine's thread only.
func (e *Engine) DetachTargets() {
	e.orphans, e.spared = nil, nil
	for _, x := range e.table.snapshot() {
		if t, ok := x.(*target); ok {
			t.detach()
		}
	}
}

func (t *target) detach() {
	e := t.e
	if s, can := t.s.(Mobile); can {
		s.Detach()
	} else {
		t.s.Release()
	}
	e.pairs.mu.Lock()
	delete(e.pairs.all, t.pair.key)
	e.pairs.mu.Unlock()
	e.leave(t.party)
	e.waiters.leave(t)
	if e.messenger == t {
		e.messenger = nil
	}
	e.table.remove(t)
}

// state returns what is known of the pair and its sessions.
func (p *pair) state() (s PairState, err error) {
	s = PairState{Origin: p.key.origin, Endpoint: p.key.endpoint, Serial: p.serial, Last: p.last, Kept: p.kept}
	for _, x := range []struct {
		t  *target
		to **TargetState
	}{{p.current, &s.Current}, {p.former, &s.Former}} {
		if x.t == nil {
			continue
		}
		if *x.to, err = x.t.state(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (t *target) state() (*TargetState, error) {
	served, can := t.s.(Mobile)
	if !can {
		return nil, errImmobile
	}
	state, err := served.State(t.e.lived)
	return &TargetState{
		ID: t.slot.id, Nonce: t.nonce, Epoch: t.epoch, Remote: t.remote, Link: t.path.Link(t.class),
		Features: t.features, Frame: t.frame,
		Keep: t.keep, From: t.from, Party: t.party.key, Key: t.key.Digest(nil), Ended: t.ended, Waits: t.waits,
		Midway: t.midway, Served: state,
	}, err
}

// Import makes a new engine, which is paused, go on with sessions of another one: those
// of its queue, and pairs without sessions. A session that cannot go on is an error,
// unless spare, which may be nil, says that the process can do without the endpoint: then
// it is forgotten, as by a process that ended, and its initiator learns no more than
// that. If there is an error, DetachTargets has to follow. Engine's thread only.
func (e *Engine) Import(all []PairState, spare func(endpoint uint16) bool) error {
	e.look()
	defer e.table.settle()
	for _, orphans := range []bool{false, true} { // which must not take the others' buffers
		for i := range all {
			s := &all[i]
			if orphan := (s.Current != nil || s.Former != nil) && !e.knows(s.Endpoint); orphan != orphans {
				continue
			}
			if err := e.importPair(s, spare != nil && spare(s.Endpoint)); err != nil {
				return fmt.Errorf("engine: session with endpoint %d: %w", s.Endpoint, err)
			}
		}
	}
	e.Room() // for the messages that wait
	return nil
}

// knows reports whether there is an endpoint of a number.
func (e *Engine) knows(endpoint uint16) bool {
	if e.cfg.Keys == nil {
		return true
	}
	_, is := e.cfg.Keys(endpoint)
	return is
}

// importPair makes a pair, with sessions that must go on, or may be forgotten.
func (e *Engine) importPair(s *PairState, may bool) (err error) {
	p := &pair{key: pairKey{s.Origin, s.Endpoint}, owner: e, serial: s.Serial, last: s.Last, kept: s.Kept}
	e.pairs.mu.Lock()
	e.pairs.all[p.key] = p
	if s.Current == nil && s.Former == nil {
		e.pairs.rest(p, e.now-s.Idle)
	}
	e.pairs.mu.Unlock()
	for _, x := range []struct {
		s  *TargetState
		to **target
	}{{s.Current, &p.current}, {s.Former, &p.former}} {
		if x.s == nil {
			continue
		}
		if *x.to, err = e.importTarget(x.s, p); err != nil && !may {
			e.pairs.drop(p)
			return err
		}
	}
	e.pairs.settle(p, e.now) // if all its sessions are forgotten
	return nil
}

func (e *Engine) importTarget(s *TargetState, p *pair) (*target, error) {
	way, err := wire.NewTemplate(s.Link)
	if err != nil {
		return nil, err
	}
	t := &target{
		e: e, pair: p, party: e.partyAt(s.Party), class: s.Link.Class,
		slot:  slot{path: e.pathOf(way), traffic: Traffic{Sessions: 1}},
		nonce: s.Nonce, epoch: s.Epoch, remote: s.Remote, endpoint: p.key.endpoint, features: s.Features,
		from: s.From, keep: s.Keep, ended: s.Ended, midway: s.Midway,
	}
	if t.frame = e.maxFrame(&t.path); s.Frame > 0 { // 0: of a process that had no shorter ones
		t.frame = min(t.frame, s.Frame)
	}
	t.path.SetFlow(t.remote)
	params := session.TargetParams{
		Local: s.ID, Remote: t.remote, Endpoint: t.endpoint, Epoch: t.epoch, MaxFrame: t.frame,
		Window:   e.cfg.Session.Window,
		Features: t.features, Kind: t.path.Kind(), Class: t.class, Party: s.Party, Memo: t.memo,
		Soon: e.Soon, Wake: func() { e.Soon(t.woken) },
	}
	gone := !t.ended && !e.rebind(t, &params, s.Key)
	if err := t.restore(s, params); err != nil {
		e.setAside(&params)
		return nil, err
	}
	e.join(t.party)
	t.seal()
	if s.Waits {
		t.wait()
	}
	if gone { // until Resume the former engine might go on with it
		e.orphans = append(e.orphans, t)
	}
	if t.due() {
		e.touch(t, &t.listed)
	}
	return t, nil
}

// restore gives the session its executor, and its place in the table.
func (t *target) restore(s *TargetState, p session.TargetParams) error {
	e := t.e
	served := e.cfg.Serve(e.lived, p)
	mobile, can := served.(Mobile)
	if !can {
		if served != nil {
			served.Release()
		}
		return errors.New("there is no executor for it here that it can move to")
	}
	err := mobile.Restore(s.Served, e.lived)
	if t.s = mobile; err == nil && !e.table.place(t, s.ID) {
		err = fmt.Errorf("its id is %#x, which is in use here or of another queue: "+
			"want that of a session of this queue", uint32(s.ID))
	}
	if err != nil {
		mobile.Detach()
	}
	return err
}

// rebind finds what the endpoint of a session has for it: its key, and where events and
// messages go. It reports whether there is such an endpoint, with the key that the
// initiator has proven.
func (e *Engine) rebind(t *target, p *session.TargetParams, proven uint64) bool {
	var keys session.Keys
	if e.cfg.Keys != nil {
		var is bool
		if keys, is = e.cfg.Keys(t.endpoint); !is {
			return false
		}
	}
	key, is := keys.Of(proven)
	if !is {
		return false
	}
	t.key, p.Key = key, key
	if t.features.Allow(wire.VerbNotice) && e.cfg.Events != nil {
		if t.events = e.cfg.Events(t.endpoint); t.events != nil {
			p.Places = t.events
		}
	}
	if t.features&wire.FeatureMessages != 0 && e.cfg.Inflow != nil {
		p.Inflow = e.cfg.Inflow(t.endpoint, t.from)
	}
	e.attend(t, p, t.pair.key.origin)
	e.callee(t, p)
	return true
}

// setAside has what a session would have had closed by Resume: until then the former
// engine might go on with it.
func (e *Engine) setAside(p *session.TargetParams) {
	if p.Inflow != nil {
		e.spared = append(e.spared, p.Inflow)
	}
	if p.Callee != nil {
		e.spared = append(e.spared, p.Callee)
	}
}
