// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/json"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Places are shared among parties, as the engine's sessions are: whatever one address
// does, it leaves places to others. The last eighth is for parties that have fewer than
// the greediest one. When none is left, the greediest party's session that has done
// least is asked to go back to user space, or one that has long been silent. It goes
// with all that it knows, on its own engine's thread: see Session.Yield.

// seated has the sessions by place. Executor.mu guards it.
type seated struct {
	live    map[uint32]*Session   // nil for one that a former process has left
	parties map[session.Party]int // places that each has
	yields  int                   // sessions that are asked to go, and have not gone
	fewest  int                   // of Executor.free that any party may take down to
}

// most returns how many places the greediest party has.
func (x *Executor) most() (most int) {
	for _, n := range x.parties {
		most = max(most, n)
	}
	return most
}

// seat returns a free place for a session of a party. x.mu is held.
func (x *Executor) seat(p session.Party) (place uint32, err error) {
	n := len(x.free)
	if n > x.fewest || n > 0 && x.parties[p] < x.most() {
		return x.free[n-1], nil
	}
	if n == 0 && x.yields == 0 {
		x.makeRoom(p)
	}
	return 0, fmt.Errorf("%w for another session", ErrFull)
}

// hasRoom reports whether there is a place for a session of a party, and otherwise asks
// for one.
func (x *Executor) hasRoom(p session.Party) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := x.seat(p)
	return err == nil
}

// makeRoom asks a session to go back to user space, for one of a party. x.mu is held.
func (x *Executor) makeRoom(p session.Party) {
	most := x.most()
	greedy := most > x.parties[p]+1
	var victim *Session
	for _, s := range x.live {
		if s == nil || s.firm.Load() || greedy && x.parties[s.p.Party] < most || !greedy && !s.idle.Load() {
			continue
		}
		if victim == nil || s.state.ops() < victim.state.ops() {
			victim = s
		}
	}
	if victim != nil {
		victim.wanted.Store(true)
		x.yields++
	}
}

// sit records that a session has a place.
func (x *Executor) sit(s *Session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live[s.place] = s
	x.parties[s.p.Party]++
}

// rise undoes sit. x.mu is held.
func (x *Executor) rise(place uint32) {
	if s := x.live[place]; s != nil {
		if x.parties[s.p.Party]--; x.parties[s.p.Party] == 0 {
			delete(x.parties, s.p.Party)
		}
		x.stay(s)
	}
	delete(x.live, place)
}

// leave forgets a session that another process continues. Its place stays taken.
func (x *Executor) leave(s *Session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.live[s.place] == s {
		x.rise(s.place)
		x.live[s.place] = nil
	}
}

// stay takes back that a session was asked to go. x.mu is held.
func (x *Executor) stay(s *Session) {
	if s.wanted.Swap(false) {
		x.yields--
	}
}

// Wanted reports whether the session is asked to go back to user space. It is called from
// time to time, and says how long the session has been silent.
func (s *Session) Wanted(now int64) bool {
	s.idle.Store(now-s.HeardAt() >= restTime)
	return s.wanted.Load()
}

// restTime is the longest silence, in nanoseconds: an initiator closes an idle session
// before that.
const restTime = int64(session.IdleClose) * 4 / 3

// Yield has the program run nothing more of the session, and returns all that it knows: a
// session.TargetState. Release has to follow, or Stay.
func (s *Session) Yield(now int64) ([]byte, error) {
	if s.torn || s.barred || s.frozen || s.ended != 0 || s.state.claimed() != 0 {
		return nil, fmt.Errorf("resident: session %#x: it does not run, so it stays", uint32(s.p.Local))
	}
	silent := now - s.HeardAt()
	if !s.oblige(callFreeze, s.Acked()) {
		return nil, fmt.Errorf("resident: session %#x does not obey", uint32(s.p.Local))
	}
	x, err := s.v.x.state(s.place)
	if err != nil {
		return nil, err
	}
	ran := between(x.Freed, x.Expected-1) | x.Ahead // and not acknowledged: the program may have had the ack
	t := session.TargetState{
		Expected: x.Expected, Freed: x.Freed, Ahead: x.Ahead, ToSend: s.toSend & ran, InfoDue: s.infoDue,
		NakDue: s.nakDue,
		Silent: silent, Probes: x.Probes, Payload: int(x.Payload), Credit: x.Credit, Lane: s.p.Lane,
	}
	for psn := x.Freed + 1; psn != x.Freed+1+window; psn++ {
		if ran&bit(psn) == 0 {
			continue
		}
		var a executorAnswer
		at := s.place*window + psn%window
		if err := s.v.x.objects.Answers.Lookup(at, &a); err != nil {
			return nil, fmt.Errorf("resident: reading answer %d: %w", at, err)
		}
		k := session.KeptFrame{Slot: uint8(psn % window), Ops: a.Ops}
		if x.Clean&bit(psn) == 0 {
			k.Buffered, k.Bytes, k.Flags, t.Spared = true, a.Data[:a.N], a.Flags, true
		}
		t.Cache = append(t.Cache, k)
	}
	s.yields = true
	return json.Marshal(&t)
}

// Stay undoes Yield, and lets the session keep its place.
func (s *Session) Stay() {
	s.yields = false
	s.firm.Store(true)
	if !s.frozen && !s.torn && !s.barred {
		s.oblige(callThaw, 0)
	}
	s.v.x.mu.Lock()
	defer s.v.x.mu.Unlock()
	s.v.x.stay(s)
}
