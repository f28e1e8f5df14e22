// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// An executor outside the process can survive it. The next process adopts the sessions of
// that executor: a memo, written when the session moved to the executor, holds what the
// engine knew. The next process has a new life; the sessions that survived keep theirs,
// Config.Resident. Sessions with other executors are lost.

// LeftSession is a session that a dead process left.
type LeftSession struct {
	ID     wire.SessionID
	Memo   []byte          // of session.TargetParams
	Live   bool            // frames run; if not, it is the former session of its pair
	Served json.RawMessage // for Mobile.Restore
}

// memo returns what another process must know of the session and its executor does not: a
// PairState. Engine's thread only.
func (t *target) memo() []byte {
	p := t.pair
	text, _ := json.Marshal(PairState{ // it has nothing that could fail
		Origin: p.key.origin, Endpoint: p.key.endpoint, Serial: p.serial,
		Current: &TargetState{
			ID: t.slot.id, Nonce: t.nonce, Epoch: t.epoch, Remote: t.remote, Link: t.path.Link(t.class),
			Features: t.features, Frame: t.frame,
			Keep: t.keep, From: t.from, Party: t.party.key, Key: t.key.Digest(nil),
		},
	})
	return text
}

// Detach is called when the engine's process ends and leaves such an executor to the next
// one. From then on the engine accepts no session, and leaves frames of unknown sessions
// to that process. Otherwise an initiator could be told a session's progress while its
// executor still runs. Engine's thread only.
func (e *Engine) Detach() { e.departs = true }

// Adopt makes a new engine, which is paused, go on with the sessions of its queue that a
// dead process has left. It calls lost for each one with which it cannot. Engine's thread
// only.
func (e *Engine) Adopt(left []LeftSession, lost func(LeftSession, error)) {
	e.look()
	pairs := map[pairKey]*PairState{}
	of := map[pairKey][]LeftSession{}
	for _, l := range left {
		s, err := l.pair()
		if err != nil {
			lost(l, err)
			continue
		}
		key := pairKey{s.Origin, s.Endpoint}
		if p := pairs[key]; p == nil {
			pairs[key] = s
		} else if err := p.merge(s); err != nil {
			lost(l, err)
			continue
		}
		of[key] = append(of[key], l)
	}
	for key, s := range pairs {
		err := e.importPair(s, false)
		for _, l := range of[key] {
			if err != nil && e.table.find(l.ID) == nil {
				lost(l, err)
			}
		}
	}
	e.table.settle()
}

// pair returns the state of the pair of endpoints, as far as this session is concerned.
func (l *LeftSession) pair() (*PairState, error) {
	s := new(PairState)
	if err := json.Unmarshal(l.Memo, s); err != nil {
		return nil, fmt.Errorf("engine: session %#x: %w", uint32(l.ID), err)
	}
	if s.Current == nil || s.Current.ID != l.ID {
		return nil, fmt.Errorf("engine: session %#x: what is written down is of another one", uint32(l.ID))
	}
	s.Current.Served = l.Served
	if !l.Live {
		s.Current, s.Former = nil, s.Current
	}
	return s, nil
}

// merge adds another session of the pair.
func (s *PairState) merge(x *PairState) error {
	if s.Current != nil && x.Current != nil || s.Former != nil && x.Former != nil {
		return fmt.Errorf(
			"engine: a second session of origin %#x to endpoint %d in the same state; want one of the two",
			s.Origin, s.Endpoint)
	}
	if later(x.Serial, s.Serial) {
		s.Serial = x.Serial
	}
	if x.Current != nil {
		s.Current = x.Current
	} else {
		s.Former = x.Former
	}
	return nil
}
