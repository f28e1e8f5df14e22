// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/json"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A session goes back to user space though the program has taken the ack of an answer
// that was still due here.
func TestYieldAfterAck(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	s, state := w.served(), w.state()
	h, payload, _ := wire.Parse(fetchAdd(&state, 0))
	if o := s.Receive(2, &h, payload, nil); o.Verdict != session.Execute || !o.Due {
		t.Fatalf("%+v, want an answer that is due", o)
	}
	ack := make([]byte, wire.MinFrame)
	h = wire.Header{Type: wire.Ack, Session: state.Id, Epoch: state.Epoch, PSN: state.Expected, Ack: state.Expected}
	h.Put(ack)
	w.run(ack[:wire.Seal(ack, wire.HeaderLen)])
	if s.Acked() != state.Expected {
		t.Fatalf("acknowledged up to %d, want %d", s.Acked(), state.Expected)
	}
	text, err := s.Yield(3)
	if err != nil {
		t.Fatal(err)
	}
	var left session.TargetState
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}
	share := func() *session.Share { return session.NewShare(session.NewPool(2048, 8)) }
	if err := session.NewTarget(share(), share(), w.params, 3).Restore(&left, 3); err != nil {
		t.Error(err)
	}
}

// A session whose place is lost, as the program does not obey, is asked for it no longer,
// so that another one can be asked.
func TestWantedSessionIsStuck(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	s, state := w.served(), w.state()
	s.v.c.tries = 3
	s.idle.Store(true)
	if w.x.makeRoom(session.Party{}); w.x.yields != 1 {
		t.Fatalf("%d sessions are asked to go, want 1", w.x.yields)
	}
	state.Lock = 1 // by a CPU that never ends
	if err := w.x.objects.Sessions.Put(w.place, &state); err != nil {
		t.Fatal(err)
	}
	if s.Release(); w.x.yields != 0 || len(w.x.parties) != 0 {
		t.Errorf("%d sessions are asked to go, and %d parties have places, want none", w.x.yields, len(w.x.parties))
	}
}
