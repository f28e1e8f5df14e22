// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

type outcomes struct{ all []Result }

func (r *outcomes) Complete(_ *Submission, c *Completion, later *Later) {
	r.all = append(r.all, c.Result(later))
}

func (w *world) one(p *Peer, r Completer, verb wire.Verb, result []byte) {
	op := w.ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, 0, 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = verb, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	op.SetOperands([]byte{1, 0, 0, 0, 0, 0, 0, 0}, nil)
	op.Result = result
	op.Publish()
}

func quietWorld(t *testing.T) *world {
	w := newWorld(t, 1, true)
	w.cfg = Config{Session: session.Config{GiveUp: time.Second}}
	w.start(0)
	w.start(1)
	w.eng[0].AddRing(w.ring, nil)
	for i := range w.peers {
		w.peers[i], _ = w.eng[0].NewPeer(wire.Link{Local: worldMACs[0], Remote: worldMACs[1]}, 0, 0)
	}
	return w
}

func (w *world) until(n int, r *outcomes) {
	w.t.Helper()
	for range 100_000 {
		if len(r.all) >= n {
			return
		}
		w.step()
	}
	w.t.Fatal("nothing happens any more")
}

// Peer.Close completes the operations that wait, also when the session before has ended
// already.
func TestPeerCloseAfterIdle(t *testing.T) {
	w := quietWorld(t)
	var r outcomes
	p := w.peers[0]
	w.one(p, &r, wire.VerbAtomic, nil)
	w.until(1, &r)
	for range 100 {
		w.step()
	}
	w.now += int64(31 * time.Second) // the session is closed as idle
	for range 100 {
		w.step()
	}
	w.one(p, &r, wire.VerbAtomic, nil)
	w.eng[0].Collect(w.ring) // as xdpfab.Endpoint.shut
	p.Close()
	w.eng[0].RemoveRing(w.ring)
	if len(r.all) != 2 {
		t.Errorf("%d operations complete after Close, want 2", len(r.all))
	}
	for range 1000 {
		w.step()
	}
	if n := binary.LittleEndian.Uint64(w.bytes); n != 1 {
		t.Errorf("%d operations ran, one of them after Close; results %+v", n, r.all)
	}
}

// An ack says that requests succeeded and have no results. For a fetch that is a
// lie: success must not be reported without a result.
func TestAckForFetch(t *testing.T) {
	w := quietWorld(t)
	var r outcomes
	p := w.peers[0]
	w.one(p, &r, wire.VerbAtomic, nil)
	w.until(1, &r)
	result := []byte("untouched")[:8]
	w.one(p, &r, wire.VerbFetch, result)
	w.eng[0].Step() // it leaves
	h := wire.Header{Type: wire.Ack, Epoch: p.r.conn.ini.Identity().Epoch, PSN: session.FirstPSN(p.r.conn.ini.Identity().Epoch) + 1, Ack: session.FirstPSN(p.r.conn.ini.Identity().Epoch) + 1, Credit: 64}
	p.r.conn.receive(&h, nil)
	if len(r.all) == 2 && r.all[1].Outcome == Success {
		t.Errorf("success, result %q", result)
	}
}

// Accepted sessions of strangers must not take the room for our own.
func TestStrangersFillTable(t *testing.T) {
	w := quietWorld(t)
	e := w.eng[1]
	src := wire.Source{Local: worldMACs[1], Remote: wire.MAC{2, 9, 9, 9, 9, 9}}
	var h wire.Header
	for i := range 5000 {
		m := wire.HelloMsg{Nonce: uint64(i), Origin: uint64(i), Session: uint32(i), MaxFrame: 1500, Window: 64}
		if w.accept(&h, &m, &src) == nil {
			break
		}
	}
	ring, _ := NewRing(8, Contexts{})
	e.AddRing(ring, nil)
	p, _ := e.NewPeer(wire.Link{Local: worldMACs[1], Remote: worldMACs[0]}, 0, 0)
	var r outcomes
	op := ring.Claim()
	op.Peer, op.Context, op.Verb, op.Flags = p.ID(), &r, VerbConnect, 0
	op.Publish()
	w.step()
	w.step()
	if len(r.all) > 0 && r.all[0].Reason == session.RefusedFull {
		t.Errorf("one stranger, %d sessions; our own: %+v", len(e.table.all), r.all[0])
	}
}

// One initiator that never acknowledges must not starve all others.
func TestAnswersHoarded(t *testing.T) {
	w := quietWorld(t)
	var r outcomes
	p := w.peers[0]
	w.one(p, &r, wire.VerbAtomic, nil)
	w.until(1, &r)
	src := wire.Source{Local: worldMACs[1], Remote: wire.MAC{2, 9, 9, 9, 9, 9}}
	for i := range 128 {
		h := wire.Header{}
		m := wire.HelloMsg{Nonce: uint64(i), Origin: uint64(i), Session: uint32(i), MaxFrame: 1500, Window: 64}
		x := w.accept(&h, &m, &src)
		w.flood(x, false)
	}
	w.one(p, &r, wire.VerbFetch, make([]byte, 8))
	w.until(2, &r)
	if r.all[1].Outcome != Success {
		t.Errorf("an honest peer's operation: %+v; %d answers hoarded", r.all[1], w.exec.Usage().Answers.Lent)
	}
}

// accept gives a stranger a session at node 1, as after its cookie has come back, or
// returns nil.
func (w *world) accept(h *wire.Header, m *wire.HelloMsg, src *wire.Source) *target {
	e := w.eng[1]
	p, _ := e.pairs.own(e, m)
	var ack wire.HelloAckMsg
	e.accept(h, m, src, p, nil, &ack)
	if ack.Status != wire.HelloAccepted {
		return nil
	}
	return p.current
}
