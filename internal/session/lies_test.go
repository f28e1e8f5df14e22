// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func loneTarget(answers, holds int) *Target {
	return NewTarget(NewShare(NewPool(1500, answers)), NewShare(NewPool(1500, holds)), TargetParams{
		Local: wire.NewSessionID(0, 0, 1, 1), Remote: 99, Epoch: 7, MaxFrame: 1500, Window: 64,
	}, 1)
}

// A held frame that could not run for want of an answer buffer, and then arrives again,
// runs; its held copy stays and runs a second time 64 frames later.
func TestHeldFrameRunsTwice(t *testing.T) {
	tgt := loneTarget(2, 8)
	first := FirstPSN(7)
	ran := map[byte]int{}
	run := func(payload []byte) bool {
		b := tgt.Buffer()
		if b == nil {
			return false
		}
		ran[payload[0]]++
		b[0] = payload[0]
		tgt.Executed(b, 8, 1, 0)
		return true
	}
	receive := func(i uint32, ack uint32) {
		h := wire.Header{Type: wire.Request, Epoch: 7, PSN: first + i, Ack: ack, Ops: 1}
		p := make([]byte, 8)
		p[0] = byte(i)
		if tgt.Receive(1, &h, p) != Execute || !run(p) {
			return
		}
		for { // as executor.Session.Receive
			payload, _, _, ok := tgt.NextHeld()
			if !ok {
				return
			}
			if !run(payload) {
				return
			}
		}
	}
	receive(1, first-1)   // early: held
	other := tgt.Buffer() // another session's answer
	receive(0, first-1)   // runs; the held one finds no buffer
	tgt.answers.Put(other)
	for i := uint32(1); i < 70; i++ {
		receive(i, first+i-1) // resent, with the ack that frees the buffer
	}
	for i, n := range ran {
		if n != 1 {
			t.Errorf("frame %d ran %d times", i, n)
		}
	}
	if ran[65] != 1 {
		t.Errorf("frame 65 ran %d times, though its answer says success", ran[65])
	}
}

// The farewell of an initiator that closes while frames are unexecuted is refused by the
// target as invalid, so the target keeps the session and its buffers.
func TestFarewellRefused(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	p.run(1)
	p.post() // in flight, never arrives
	b := make([]byte, 2048)
	p.ini.Emit(p.now, b)
	p.ini.Close(ClosedHere)
	p.ini.Unanswered(func(uint32, FrameOutcome) {})
	n := p.ini.Emit(p.now, b)
	if n == 0 {
		t.Fatal("no farewell")
	}
	h, payload, r := parse(b[:n])
	if r != wire.ReasonOK || h.Type != wire.Reset {
		t.Fatal(r, h)
	}
	if v := p.tgt.Receive(p.now, &h, payload); v != Gone {
		t.Errorf("farewell: verdict %v, want %v", v, Gone)
	}
}

// A target that challenges every hello keeps the initiator connecting forever.
func TestEndlessChallenge(t *testing.T) {
	cfg, _ := Config{GiveUp: time.Second}.WithDefaults()
	s := NewInitiator(&cfg, NewPool(1500, 8), Params{Local: 1 << 6, MaxFrame: 1500, Nonce: 5}, 1)
	b := make([]byte, 2048)
	now, hellos := int64(1), 0
	for ; now < int64(20*time.Second); now += int64(10 * time.Millisecond) {
		s.Tick(now)
		if s.Emit(now, b) > 0 {
			hellos++
			n := noKey.Reply(b, &wire.HelloMsg{Nonce: 5}, 0, 0, wire.HelloAckMsg{Status: wire.HelloChallenge, Cookie: wire.Cookie{1}})
			h, payload, _ := parse(b[:n])
			s.Receive(now, &h, payload)
		}
		if st, _ := s.State(); st == Closed {
			return
		}
	}
	t.Errorf("still connecting after 20 s, GiveUp is 1 s; %d hellos", hellos)
}

// A target that grants no credit, with nothing in flight, stops the session: no timer
// runs, and GiveUp never comes.
func TestNoCredit(t *testing.T) {
	p := newPair(t, 1, Config{GiveUp: time.Second})
	p.open()
	p.run(1)
	h := wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.next, Ack: p.ini.next - 1, Credit: 0}
	p.ini.Receive(p.now, &h, nil)
	if b := p.ini.Stage(); b == nil {
		d := p.ini.Deadline() - p.now
		t.Errorf("nothing in flight, nothing may be sent, and the next deadline is in %v", time.Duration(d))
	}
}

// Naks or empty acks without any progress do not put off giving up: nobody knows whether
// a target that lives has sent them.
func TestNoProgressIsGivenUp(t *testing.T) {
	p := newPair(t, 1, Config{GiveUp: time.Second})
	p.open()
	p.run(1)
	p.post()
	b := make([]byte, 2048)
	start := p.now
	for p.now < start+int64(2*time.Second) {
		p.now += int64(50 * time.Millisecond)
		for p.ini.Emit(p.now, b) > 0 {
		}
		h := wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.una, Ack: p.ini.una - 1, Credit: 64}
		p.ini.Receive(p.now, &h, nil)
		p.ini.Tick(p.now)
		if st, _ := p.ini.State(); st == Suspended {
			return
		}
	}
	t.Error("no give-up within 2 s without any progress, GiveUp is 1 s")
}

// A target ignores a frame of a type that only targets send, whatever the frame
// acknowledges: it may be an answer of its own, which the network has brought back.
func TestOwnAnswersFreeNothing(t *testing.T) {
	for _, ty := range []wire.Type{wire.Response, wire.Nak, wire.HelloAck} {
		tgt := loneTarget(2, 2)
		first := FirstPSN(7)
		request := wire.Header{Type: wire.Request, Epoch: 7, PSN: first, Ack: first - 1, Ops: 1}
		if v := tgt.Receive(1, &request, make([]byte, 8)); v != Execute {
			t.Fatalf("the first request: verdict %v, want %v", v, Execute)
		}
		tgt.Executed(tgt.Buffer(), 8, 1, 0)
		own := wire.Header{Type: ty, Epoch: 7, PSN: first, Ack: first, Ops: 1}
		if v := tgt.Receive(1, &own, make([]byte, 8)); v != Invalid {
			t.Errorf("%v: verdict %v, want %v", ty, v, Invalid)
		}
		if v := tgt.Receive(1, &request, make([]byte, 8)); v != Duplicate {
			t.Errorf("%v: the request once more: verdict %v, want %v", ty, v, Duplicate)
		}
	}
}

// noInflow is an inflow that is never asked.
type noInflow struct{ Inflow }

// A frame of messages waits for its turn also where there is no order. One of the same
// psn that claims to be of another kind does not run ahead of it.
func TestFrameOfTwoKinds(t *testing.T) {
	tgt := NewTarget(NewShare(NewPool(1500, 8)), NewShare(NewPool(1500, 8)), TargetParams{
		Local: wire.NewSessionID(0, 0, 1, 1), Remote: 99, Epoch: 7, MaxFrame: 1500, Window: 64,
		Features: wire.FeatureUnordered | wire.FeatureMessages, Inflow: noInflow{},
	}, 1)
	h := wire.Header{Type: wire.Request, Epoch: 7, PSN: FirstPSN(7) + 3, Ack: FirstPSN(7) - 1, Ops: 1, Flags: wire.FlagMessages}
	for _, flags := range []uint8{wire.FlagMessages, 0, wire.FlagMessages} {
		if h.Flags = flags; tgt.Receive(1, &h, make([]byte, 16)) != Held {
			t.Errorf("flags %#x: the frame is not held", flags)
		}
		if err := tgt.Check(); err != nil {
			t.Error(err)
		}
	}
	if ran := tgt.Ran(); ran != (Ran{PSN: FirstPSN(7) - 1}) {
		t.Errorf("%+v ran, want nothing", ran)
	}
}

// A psn that is half of all numbers away is neither ahead nor behind: it is not kept, and
// does not run, though it is ahead of what is expected.
func TestFarthestPSN(t *testing.T) {
	for _, features := range []wire.Features{0, wire.FeatureUnordered} {
		tgt := NewTarget(NewShare(NewPool(1500, 8)), NewShare(NewPool(1500, 8)), TargetParams{
			Local: wire.NewSessionID(0, 0, 1, 1), Epoch: 7, MaxFrame: 1500, Window: 64, Features: features,
		}, 1)
		for i := range uint32(3) {
			h := wire.Header{Type: wire.Request, Epoch: 7, PSN: tgt.Acked() + 1<<31 + i - 1, Ack: tgt.Acked(), Ops: 1}
			if v := tgt.Receive(1, &h, make([]byte, 8)); v == Execute || v == Held || v == Duplicate || tgt.Holds() {
				t.Errorf("features %v, psn %#x: %v", features, h.PSN, v)
			}
		}
		if err := tgt.Check(); err != nil {
			t.Error(err)
		}
	}
}
