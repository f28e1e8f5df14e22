// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A session costs the program a place, and each frame that it has to leave to the poller
// costs two system calls more. So a session is ordinary until it uses a resident region.

// Migratable is a session that becomes resident with the first frame that shows a use for
// it, if nothing is under way then: all frames before it have run, and their answers have
// arrived. So there is nothing to hand over but the number of the next frame.
type Migratable struct {
	engine.Served
	Ordinary *executor.Session // Served, until it is nil
	moved    *resident.Session // Served, from then on
	H        *Residence
	server   *resident.Server
	params   session.TargetParams
	former   *executor.Session // that Settle is for, too, once the session has moved
	Stays    bool              // frozen or ended: no frame runs, here or elsewhere
	begin    func(now int64) *executor.Session
	askAt    int64 // when the session may ask for a place again, in the engine's time

	frames, ops uint64 // of former stays in the program: see Unseen
}

// askEvery is the time between two attempts of a session to get a place, in nanoseconds.
const askEvery = int64(100e6)

// Migratable returns a session which has just begun as one that can become resident, if
// it can ever be. It runs on the thread of the queue's engine.
func (h *Residence) Migratable(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served {
	begin := func(now int64) *executor.Session { return x.Begin(now, p, nil) }
	s, servers := begin(now), h.servers.Load()
	if servers == nil || !resident.Takes(&p) {
		return s
	}
	return &Migratable{Served: s, Ordinary: s, H: h, server: (*servers)[queue], params: p, begin: begin}
}

// Tick implements engine.Restless: a session that is asked to gives its place back.
func (m *Migratable) Tick(now int64) {
	if m.moved != nil && !m.left() && m.moved.Wanted(now) {
		m.yield(now)
	}
}

// yield makes the session ordinary again, if it can.
func (m *Migratable) yield(now int64) {
	state, err := m.moved.Yield(now)
	var s *executor.Session
	if err == nil {
		s = m.begin(now)
		if err = s.Restore(state, now); err != nil {
			s.Detach()
		}
	}
	if err != nil {
		m.moved.Stay()
		return
	}
	m.moved.Settle()
	m.frames, m.ops, _ = m.Unseen()
	m.moved.Release()
	m.Served, m.Ordinary, m.moved, m.askAt = s, s, nil, now+askEvery
}

// Receive implements engine.Served.
func (m *Migratable) Receive(now int64, h *wire.Header, payload, out []byte) session.Outcome {
	if m.Ordinary != nil && !m.Stays && now >= m.askAt && m.quiet(h) && m.H.Executes(payload, int(h.Ops)) {
		m.move(now, h.PSN)
	}
	return m.Served.Receive(now, h, payload, out)
}

// Limit implements engine.Timed.
func (m *Migratable) Limit() int64 {
	if m.Ordinary == nil { // no operation waits in the program
		return math.MaxInt64
	}
	return m.Ordinary.Limit()
}

// Expire implements engine.Timed.
func (m *Migratable) Expire(now int64) int64 {
	if m.Ordinary == nil {
		return math.MaxInt64
	}
	return m.Ordinary.Expire(now)
}

// Unseen implements engine.Apart.
func (m *Migratable) Unseen() (frames, ops uint64, resident bool) {
	if m.moved == nil {
		return m.frames, m.ops, false
	}
	frames, ops = m.moved.Unseen()
	return m.frames + frames, m.ops + ops, true
}

// left reports whether the program keeps the session after the domain's end.
func (m *Migratable) left() bool { return m.moved != nil && m.H.Leaving.Load() }

// Freeze implements engine.Served.
func (m *Migratable) Freeze(now int64, ack uint32) session.Ran {
	if m.Stays = true; m.left() {
		return m.Ran()
	}
	return m.Served.Freeze(now, ack)
}

// Shutdown implements engine.Served.
func (m *Migratable) Shutdown(why wire.ResetReason) {
	if m.Stays = true; !m.left() {
		m.Served.Shutdown(why)
	}
}

// Release implements engine.Served.
func (m *Migratable) Release() {
	if m.left() {
		m.moved.Detach()
		return
	}
	m.Served.Release()
}

// inProgram stands for the state of a session that the program has, and that a process
// left when it died. One that is handed over has a handedState.
var inProgram = []byte(`"in the program"`)

// HandedState is what the program does not know of a session that it has. Its text is a
// list, so that no other sort of session takes it for a state of its own.
type HandedState [1]wire.ResetReason // why it was shut down, or 0

// State implements engine.Mobile.
func (m *Migratable) State(now int64) ([]byte, error) {
	if m.moved != nil {
		return json.Marshal(HandedState{m.moved.Ended()})
	}
	return m.Ordinary.State(now)
}

// Restore implements engine.Mobile.
func (m *Migratable) Restore(state []byte, now int64) (err error) {
	var s *resident.Session
	var handed HandedState
	switch {
	case bytes.Equal(state, inProgram):
		s, err = m.server.Adopt(now, m.params)
	case json.Unmarshal(state, &handed) == nil:
		s, err = m.server.TakeOver(now, m.params, handed[0])
	default:
		err = m.Ordinary.Restore(state, now)
		m.Stays = m.Ordinary.Ended()
		return err
	}
	if err == nil {
		m.Ordinary.Detach()
		m.Served, m.moved, m.Ordinary = s, s, nil
	}
	return err
}

// Detach implements engine.Mobile.
func (m *Migratable) Detach() {
	if m.moved != nil {
		m.moved.Detach()
		return
	}
	m.Ordinary.Detach()
}

// quiet reports whether nothing is under way but this frame. It is a request, so its
// initiator has finished finding out how long frames may be (internal/session/proof.go).
// The program must have no session before that: it answers short probes without a process
// and long ones not, and so wide paths would look narrow.
func (m *Migratable) quiet(h *wire.Header) bool {
	ran := m.Ordinary.Ran()
	return h.Type == wire.Request && h.PSN == ran.PSN+1 && h.Ack == ran.PSN && ran.Early == 0 && !m.Ordinary.Holds() &&
		!m.Ordinary.Due() && m.Ordinary.Waiting() == 0
}

// move makes the session resident. If there is no place for it, it stays with the poller.
func (m *Migratable) move(now int64, psn uint32) {
	s, err := m.server.Continue(now, m.params, psn)
	if err != nil {
		m.askAt = now + askEvery
		return
	}
	m.Ordinary.Release()
	m.Served, m.moved, m.former, m.Ordinary = s, s, m.Ordinary, nil
}

// Settle implements engine.Served.
func (m *Migratable) Settle() {
	m.Served.Settle()
	if m.former != nil { // it may have run frames of the same burst
		m.former.Settle()
		m.former = nil
	}
}

// Executes reports whether the first operation of a frame is one that the program can
// execute.
func (h *Residence) Executes(payload []byte, ops int) bool {
	var records wire.RecordReader
	var first wire.Record
	records.Reset(payload, ops)
	if !records.Next(&first) || !first.Verb.Atomic() || first.Datatype > uint8(atomic.Uint64) {
		return false
	}
	_, is := (*h.Keys.Load())[first.Key]
	return is
}
