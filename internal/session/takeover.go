// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// TargetState is everything that a Target knows, for the process that continues the
// session. What was agreed when the session began is in TargetParams.
type TargetState struct {
	Expected uint32
	Freed    uint32
	Cache    []KeptFrame // answers under way
	Held     []KeptFrame // early requests
	Ahead    uint64
	ToSend   uint64
	InfoDue  bool
	NakDue   bool
	ResetDue wire.ResetReason
	Ended    wire.ResetReason
	Waits    bool
	Partly   uint8
	Handed   uint32 `json:",omitempty"` // frames that are handed over
	// Unanswered are frames that were handed over, and are never answered.
	Unanswered uint32 `json:",omitempty"`
	Away       uint64 `json:",omitempty"` // frames that a function has yet to answer
	Ordered    bool   `json:",omitempty"` // without order, it keeps one nevertheless: see Target.Order
	Frozen     bool
	Silent     int64 // nanoseconds since something new was heard
	Probes     uint32
	Spared     bool // the session's own buffer is among those of Cache, or lent to its executor
	Payload    int
	Credit     uint16
	Lane       uint8 // the initiator's
}

// Ended reports whether the session executes nothing from now on: the target was frozen
// or shut down.
func (t *Target) Ended() bool { return t.frozen || t.ended != 0 }

// KeptFrame is an answer or an early request. A clean answer has no bytes, and is not
// Buffered.
type KeptFrame struct {
	Slot     uint8
	Buffered bool
	Bytes    []byte
	Ops      uint8
	Flags    uint8
}

// State returns what the target knows. The bytes are those of its buffers, valid until
// its Release.
func (t *Target) State(now int64) TargetState {
	s := TargetState{
		Expected: t.expected, Freed: t.freed, Ahead: t.ahead, ToSend: t.toSend, InfoDue: t.infoDue, NakDue: t.nakDue,
		ResetDue: t.resetDue, Ended: t.ended, Waits: t.waits, Partly: t.partly, Frozen: t.frozen,
		Silent: now - t.heardAt, Probes: t.probes, Spared: t.spare == nil, Payload: t.payload, Credit: t.credit,
		Lane: t.lane, Handed: t.handed, Unanswered: t.unanswered, Away: t.away,
		Ordered: t.ordered,
	}
	for i := range t.cache {
		if a := &t.cache[i]; a.buf != nil || a.ops != 0 {
			s.Cache = append(s.Cache, KeptFrame{uint8(i), a.buf != nil, a.buf[:a.n], a.ops, a.flags})
		}
		if e := &t.held[i]; e.buf != nil {
			s.Held = append(s.Held, KeptFrame{uint8(i), true, e.buf[:e.n], e.ops, e.flags})
		}
	}
	return s
}

// Restore makes a new target go on where another process has stopped. If there is an
// error, the target can only be released.
func (t *Target) Restore(s *TargetState, now int64) error {
	if s.Payload > min(t.answers.Size(), t.holds.Size()) {
		return fmt.Errorf("session of frames with %d bytes of payload: buffers here have %d", s.Payload,
			t.answers.Size())
	}
	t.expected, t.turn, t.freed, t.ahead, t.toSend = s.Expected, s.Expected, s.Freed, s.Ahead, s.ToSend
	t.infoDue, t.nakDue, t.resetDue, t.ended = s.InfoDue, s.NakDue, s.ResetDue, s.Ended
	t.waits, t.partly, t.frozen, t.heardAt, t.probes = s.Waits, s.Partly, s.Frozen, now-s.Silent, s.Probes
	t.payload, t.credit, t.lane, t.handed, t.unanswered = s.Payload, s.Credit, s.Lane, s.Handed, s.Unanswered
	if t.away = s.Away; s.Ordered {
		t.Order()
	}
	for _, k := range s.Cache {
		a := &t.cache[k.Slot&slotMask]
		if a.ops, a.flags = k.Ops, k.Flags; !k.Buffered {
			continue
		}
		if a.buf = t.Reclaim(s.Spared, k.Bytes); a.buf == nil {
			return errShort
		}
		a.n = len(k.Bytes)
	}
	for _, k := range s.Held {
		b := t.holds.take()
		if b == nil || len(k.Bytes) > len(b) {
			t.holds.Put(b)
			return errShort
		}
		t.held[k.Slot&slotMask] = early{b, copy(b, k.Bytes), k.Ops, k.Flags}
		t.heldMask |= 1 << (k.Slot & slotMask)
	}
	return t.Check()
}

var errShort = fmt.Errorf("no buffer for a frame of a session: want as many buffers, and as large ones, as there were")

// Reclaim takes an answer buffer for bytes that another process had in one, or returns
// nil: the session's own buffer if that is what it was, and otherwise one that the shares
// of parties do not stand in the way of, since they did not there.
func (t *Target) Reclaim(spared bool, bytes []byte) (b []byte) {
	if spared && t.spare != nil {
		b, t.spare = t.answers.pool.Full(t.spare), nil
	} else if b = t.answers.take(); b == nil {
		return nil
	}
	if len(bytes) > t.payload {
		t.give(b)
		return nil
	}
	copy(b, bytes)
	return b
}

// InflowState is what an inflow knows of the message in progress.
type InflowState struct {
	Number    uint64 // of the session, among those of the inflow's owner
	Has       uint64
	Lacks     uint64
	Told      bool
	Announced *wire.Message `json:",omitempty"` // which has no part here
	ForRoom   bool          // it was announced for want of room
	Admitted  bool
	Returns   uint32 // see share.Admission
	Status    wire.Status
	Values    uint64
}

// MobileInflow is an Inflow of a session that another process can go on with.
type MobileInflow interface {
	Inflow
	State() InflowState
	Restore(InflowState)
}
