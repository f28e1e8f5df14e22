// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The late outcome of an array must be about the whole array: the part that was answered
// before the partition, and the part that never left.
func TestLateOutcomeOfArray(t *testing.T) {
	w := quietWorld(t)
	const n = 100_000
	var r outcomes
	operand := make([]byte, 8*n)
	for i := range n {
		operand[8*i] = 1
		w.bytes[8*i] = 7
	}
	op := w.ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = w.peers[0].ID(), &r, 1, 0, n
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	op.SetOperands(operand, nil)
	op.Result = make([]byte, 8*n)
	op.Publish()
	for w.bytes[8*1000] == 7 { // part of it has run
		w.step()
	}
	w.step()                                   // and is answered
	w.ports[1].SetFaults(port.Faults{Loss: 1}) // requests arrive, answers do not
	w.until(1, &r)
	w.ports[1].SetFaults(port.Faults{})
	later := r.all[0].Later
	if later == nil {
		t.Fatalf("nothing to be cleared up: %+v", r.all[0])
	}
	for range 100_000 {
		select {
		case <-later.Done():
			res, data := later.Outcome()
			ran, wrong := 0, 0
			for i := range n {
				if w.bytes[8*i] == 8 {
					ran++
					if binary.LittleEndian.Uint64(data[8*i:]) != 7 {
						wrong++
					}
				}
			}
			if res.Outcome == Success && ran != n {
				t.Errorf("late outcome: success, but %d of %d elements ran", ran, n)
			}
			if res.Outcome == Success && wrong > 0 {
				t.Errorf("late outcome: success, but %d of %d results are not there", wrong, ran)
			}
			t.Logf("%+v, %d ran", res, ran)
			return
		default:
			w.step()
		}
	}
	t.Error("never known")
}

// A fence holds back the operations posted after it until all earlier ones have
// completed, also those that a session in doubt had in flight, whose answers the next
// session asks for.
func TestFenceWaitsForDoubted(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	old := p.r.conn
	id, known := old.slot.id, old.ini.Identity()
	c.pass = func(to int, packet []byte) bool { // no answer of the old session arrives
		h, ok := headerOf(packet)
		return to == 1 || !ok || wire.SessionID(h.Session) != id
	}
	before := c.post(p, 0, 2)
	for c.word(0) != 2 {
		c.step()
	}
	var payload [wire.ResetLen]byte
	(&wire.ResetMsg{Session: known.Session, Reason: wire.ResetUnknownSession}).Put(payload[:])
	old.receive(&wire.Header{Type: wire.Reset, Epoch: known.Epoch}, payload[:])
	if !old.doubted {
		t.Fatal("not in doubt")
	}
	fenced := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Count, op.Offset = p.ID(), fenced, 1, 1, 0
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), FlagFence
	op.Publish()
	for range 50 {
		c.step()
	}
	if p.r.conn == old || p.r.conn.spent() {
		t.Fatal("no session follows")
	}
	if len(fenced.all) > 0 || len(before.all) > 0 {
		t.Errorf("%+v after the fence, while what was posted before is at %+v", fenced.all, before.all)
	}
	c.pass = nil
	if r := c.done(before); r.Outcome != Success {
		t.Errorf("before the fence: %+v", r)
	}
	if r := c.done(fenced); r.Outcome != Success {
		t.Errorf("after the fence: %+v", r)
	}
}
