// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Inquiry is a request for a connection with an endpoint of another node that listens,
// until it is answered. It belongs to the engine's thread.
type Inquiry struct {
	e     *Engine
	asker *session.Asker
	slot
	listed bool // on the engine's dirty list
	done   func(answer wire.Connection, why session.Reason)
}

// Ask requests a connection with the endpoint of that number at the end of link. done is
// called once, on the engine's thread, with the answer; why is [session.Alive] if the
// request was accepted, and otherwise the reason why there will be no connection. It is
// not called after Cancel. data is the caller's. Engine's thread only.
func (o *Origin) Ask(link wire.Link, lane uint8, endpoint uint16, data []byte,
	done func(wire.Connection, session.Reason)) (*Inquiry, error) {
	e := o.e
	t, err := wire.NewTemplate(link)
	if err != nil {
		return nil, err
	}
	q := &Inquiry{e: e, slot: slot{path: e.pathOf(t)}, done: done}
	if e.closing || !e.table.add(q) && !(e.evictSuspended() && e.table.add(q)) {
		done(wire.Connection{}, session.RefusedFull)
		return q, nil
	}
	p := session.Params{
		Local: q.slot.id, Lane: lane, Endpoint: endpoint, MaxFrame: e.maxFrame(&q.path), Nonce: e.cfg.Random(),
		Origin: o.id,
		Options: wire.Options{Class: link.Class,
			Connection: wire.Connection{Set: true, Endpoint: o.endpoint, Origin: o.id}}, Key: o.key,
	}
	p.Options.Connection.Fill(data)
	q.asker = session.NewAsker(o.cfg, p, e.now)
	q.path.SetFlow(uint32(q.slot.id))
	e.touch(q, &q.listed)
	return q, nil
}

// ID names the origin to targets: it is random, and never used again.
func (o *Origin) ID() uint64 { return o.id }

// Cancel ends the request without an answer. Engine's thread only.
func (q *Inquiry) Cancel() {
	q.done = func(wire.Connection, session.Reason) {}
	if q.slot.id != 0 {
		q.asker.Cancel()
		q.settle()
	}
}

// settle takes the inquiry out of the table and tells the answer, once there is one.
func (q *Inquiry) settle() {
	answer, why, over := q.asker.Outcome()
	if !over || q.slot.id == 0 {
		return
	}
	q.e.table.remove(q)
	q.done(answer, why)
}

func (q *Inquiry) place() *slot      { return &q.slot }
func (q *Inquiry) due() bool         { return q.asker.Due() }
func (q *Inquiry) emit(b []byte) int { return q.asker.Emit(b) }
func (q *Inquiry) clean()            { q.listed = false }

func (q *Inquiry) shutdown() {
	q.asker.Cancel()
	q.settle()
}

func (q *Inquiry) receive(h *wire.Header, payload []byte) bool {
	q.e.look()
	if !q.asker.Receive(q.e.now, h, payload) {
		q.e.count[Invalid]++
	}
	q.progress()
	return true
}

func (q *Inquiry) tick(now int64) int64 {
	q.asker.Tick(now)
	q.progress()
	return q.asker.Deadline()
}

func (q *Inquiry) progress() {
	if q.asker.Due() && !q.listed {
		q.e.touch(q, &q.listed)
	}
	q.settle()
}
