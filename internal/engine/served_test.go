// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// mapState is all that is known of a session, in a map as an executor in the kernel would
// have it: a value of fixed size without pointers, read and written as a whole.
type mapState struct {
	next, acked uint32
	heardAt     int64
	frozen      bool
	reset       wire.ResetReason
	due         [session.MaxWindow]bool
	answers     [session.MaxWindow][8]byte // one value a frame is all that it can do
}

// mapExecutor adds to words that are not registered, one operation a frame. It keeps no
// early frames: those come again.
type mapExecutor struct {
	words    map[uint64]uint64
	sessions map[wire.SessionID]mapState
	straight int // answers written at once
	settled  int
}

// mapSession is the engine's handle on one session: a key.
type mapSession struct {
	x *mapExecutor
	p session.TargetParams
}

func (x *mapExecutor) begin(now int64, p session.TargetParams) engine.Served {
	if len(x.sessions) > 0 {
		return nil // it has room for one
	}
	first := session.FirstPSN(p.Epoch)
	x.sessions[p.Local] = mapState{next: first, acked: first - 1, heardAt: now}
	return mapSession{x, p}
}

func (s mapSession) Receive(now int64, h *wire.Header, payload, out []byte) (o session.Outcome) {
	m := s.x.sessions[s.p.Local]
	defer func() { s.x.sessions[s.p.Local] = m }()
	if wire.Diff(h.Ack, m.acked) > 0 && wire.Diff(h.Ack, m.next) < 0 {
		m.acked, m.heardAt = h.Ack, now
	}
	at := h.PSN % session.MaxWindow
	switch d := wire.Diff(h.PSN, m.next); {
	case h.Type == wire.Reset:
		o.Verdict = session.Gone
		return o
	case h.Type != wire.Request:
		o.Verdict = session.Drop
		return o
	case d > 0, m.frozen, wire.Diff(h.PSN, m.acked) <= 0:
		o.Verdict = session.Stale
		return o
	case d < 0:
		o.Verdict = session.Duplicate
	case h.Ops != 1:
		o.Refused = wire.ReasonBadOps
		return o
	default:
		o.Verdict, o.Frames, o.Ops = session.Execute, 1, 1
		m.answers[at] = s.x.add(payload)
		m.next++
		m.heardAt = now
	}
	if out == nil {
		m.due[at], o.Due = true, true
		return o
	}
	s.x.straight++
	o.Answer = s.answer(&m, h.PSN, out)
	return o
}

// add runs the record in a payload.
func (x *mapExecutor) add(payload []byte) (before [8]byte) {
	var r wire.RecordReader
	var rec wire.Record
	r.Reset(payload, 1)
	if !r.Next(&rec) || rec.Verb != wire.VerbFetch || len(rec.Operand) != 8 {
		panic("more than this executor can do")
	}
	binary.LittleEndian.PutUint64(before[:], x.words[rec.Offset])
	x.words[rec.Offset] += binary.LittleEndian.Uint64(rec.Operand)
	return before
}

// answer writes the response to a frame that has run.
func (s mapSession) answer(m *mapState, psn uint32, b []byte) int {
	at := psn % session.MaxWindow
	m.due[at] = false
	h := wire.Header{Type: wire.Response, Session: s.p.Remote, Epoch: s.p.Epoch, PSN: psn, Ack: m.next - 1, Credit: uint16(s.p.Window), Ops: 1, Lane: s.p.Local.Lane()}
	h.Put(b)
	return wire.HeaderLen + copy(b[wire.HeaderLen:], m.answers[at][:])
}

func (s mapSession) Due() bool {
	m := s.x.sessions[s.p.Local]
	return m.due != [session.MaxWindow]bool{} || m.reset != 0
}

func (s mapSession) Emit(b []byte) (n int) {
	m := s.x.sessions[s.p.Local]
	defer func() { s.x.sessions[s.p.Local] = m }()
	for psn := m.acked + 1; wire.Diff(psn, m.next) < 0; psn++ {
		if m.due[psn%session.MaxWindow] {
			return s.answer(&m, psn, b)
		}
	}
	m.due = [session.MaxWindow]bool{} // the other answers have arrived meanwhile
	if m.reset == 0 {
		return 0
	}
	h := wire.Header{Type: wire.Reset, Session: s.p.Remote, Epoch: s.p.Epoch, Ack: m.next - 1, Lane: s.p.Local.Lane()}
	h.Put(b)
	msg := wire.ResetMsg{Session: uint32(s.p.Local), PSN: m.next, Reason: m.reset}
	msg.Put(b[wire.HeaderLen:])
	m.reset = 0
	return wire.HeaderLen + wire.ResetLen
}

func (s mapSession) Settle()          { s.x.settled++ }
func (s mapSession) Ran() session.Ran { return session.Ran{PSN: s.x.sessions[s.p.Local].next - 1} }
func (s mapSession) Acked() uint32    { return s.x.sessions[s.p.Local].acked }
func (s mapSession) HeardAt() int64   { return s.x.sessions[s.p.Local].heardAt }
func (s mapSession) Release()         { delete(s.x.sessions, s.p.Local) }

// Rider has none: every answer of this executor has a result.
func (s mapSession) Rider() (wire.Rider, bool) { return wire.Rider{}, false }

// Retry has nothing to do: there are no messages.
func (s mapSession) Retry() (o session.Outcome) { return o }

func (s mapSession) Freeze(int64, uint32) session.Ran {
	m := s.x.sessions[s.p.Local]
	m.frozen = true
	for psn := m.acked + 1; psn != m.next; psn++ {
		m.due[psn%session.MaxWindow] = true
	}
	s.x.sessions[s.p.Local] = m
	return session.Ran{PSN: m.next - 1}
}

func (s mapSession) Shutdown(why wire.ResetReason) {
	m := s.x.sessions[s.p.Local]
	m.frozen, m.reset = true, why
	s.x.sessions[s.p.Local] = m
}

// Another executor serves a session from the hello to the end, with an engine and an
// initiator that know nothing of it: each operation runs once, in order, whatever the
// network does, and the end of the session tells which never ran.
func TestAnotherExecutor(t *testing.T) {
	for name, f := range map[string]port.Faults{
		"none": {}, "all": {Loss: 0.1, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			bn := newBench(t, 3, session.Config{GiveUp: time.Hour})
			x := &mapExecutor{words: map[uint64]uint64{}, sessions: map[wire.SessionID]mapState{}}
			var err error
			bn.b.Engine, err = engine.New(engine.Config{
				Port: bn.b.port, Local: macB, MTU: 1500, Serve: x.begin,
				Accept: func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted },
				Clock:  func() int64 { return bn.now },
			})
			if err != nil {
				t.Fatal(err)
			}
			p := bn.peer(0)
			bn.a.port.SetFaults(f)
			bn.b.port.SetFaults(f)
			var r results
			const n = 300
			for i := range uint64(n) { // one at a time, so that each has a frame of its own
				out := make([]byte, 8)
				bn.fetchAdd(p, &r, 1, 8, i+1, out)
				bn.until(func() bool { return r.n == int(i)+1 })
				if got := binary.LittleEndian.Uint64(out); r.last.Outcome != engine.Success || got != i*(i+1)/2 {
					t.Fatalf("operation %d fetched %d, want %d: %+v", i, got, i*(i+1)/2, r.last)
				}
			}
			if x.words[8] != n*(n+1)/2 || x.straight < n || x.settled != n {
				t.Errorf("the word holds %d; %d answers written at once, %d bursts settled, of %d", x.words[8], x.straight, x.settled, n)
			}
			if u := bn.b.Usage(); u.Accepted != 1 || u.Sessions != 1 {
				t.Errorf("the engine has %+v", u)
			}
			bn.a.port.SetFaults(port.Faults{})
			bn.b.port.SetFaults(port.Faults{})
			bn.b.Close()
			bn.until(func() bool { return len(x.sessions) == 0 && bn.b.Idle() })
			bn.fetchAdd(p, &r, 1, 8, 1, make([]byte, 8))
			bn.until(func() bool { return r.n == n+1 })
			if r.last.Outcome != engine.NotExecuted || r.last.Reason != session.RefusedClosing {
				t.Errorf("after the end: %+v", r.last)
			}
		})
	}
}

// An executor that has no room refuses a session, and the engine keeps nothing of it.
func TestExecutorWithoutRoom(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	refused := 0
	var err error
	bn.b.Engine, err = engine.New(engine.Config{
		Port: bn.b.port, Local: macB, MTU: 1500, Clock: func() int64 { return bn.now },
		Serve:  func(int64, session.TargetParams) engine.Served { refused++; return nil },
		Accept: func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted },
	})
	if err != nil {
		t.Fatal(err)
	}
	var r results
	bn.fetchAdd(bn.peer(0), &r, 1, 0, 1, make([]byte, 8))
	bn.until(func() bool { return r.n == 1 })
	if refused == 0 || r.last.Outcome != engine.NotExecuted || r.last.Reason != session.RefusedFull {
		t.Errorf("%d times refused: %+v", refused, r.last)
	}
	if u := bn.b.Usage(); u.Sessions+u.Parties != 0 {
		t.Errorf("kept after a refusal: %+v", u)
	}
}
