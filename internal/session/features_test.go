// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// An old side and a new one agree on the features that both know, whatever each of them
// announces.
func TestFeaturesAgree(t *testing.T) {
	const later = 1 << 30 // a bit that this version has no meaning for
	sets := []wire.Features{0, wire.FeatureMemory, wire.FeatureMemory | wire.FeatureMessages, later, later | wire.FeatureMessages, ^wire.Features(0)}
	for _, one := range sets {
		for _, other := range sets {
			p := newPair(t, 1, Config{Features: one})
			p.other.Features = other
			p.open()
			if got := p.ini.Features(); got != one&other {
				t.Errorf("%#x meets %#x: the initiator has %#x, want %#x", one, other, got, one&other)
			}
			p.run(10)
			p.check(10)
		}
	}
}

// A target that grants a feature that was not asked for is not believed.
func TestFeaturesNotAskedFor(t *testing.T) {
	p := newPair(t, 1, Config{Features: wire.FeatureMemory})
	if ev := p.answer(wire.HelloAckMsg{Status: wire.HelloAccepted, MaxFrame: 1500, Window: 8, Features: ^wire.Features(0)}); ev.Kind != Opened {
		t.Fatalf("%+v, want the session to open", ev)
	}
	if got := p.ini.Features(); got != wire.FeatureMemory {
		t.Errorf("the session has %#x, want %#x", got, wire.FeatureMemory)
	}
}

// A refusal and a reset for a reason of a later version end the session at once.
func TestReasonsOfLaterVersions(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.answer(wire.HelloAckMsg{Status: 200})
	if state, why := p.ini.State(); state != Closed || why != RefusedVersion {
		t.Errorf("hello status 200: state %v, %v; want %v, %v", state, why, Closed, RefusedVersion)
	}
	p = newPair(t, 1, Config{})
	p.open()
	b := make([]byte, wire.ResetLen)
	(&wire.ResetMsg{Session: uint32(p.tgt.local), Reason: 200}).Put(b)
	p.ini.Receive(p.now, &wire.Header{Type: wire.Reset, Epoch: p.tgt.epoch}, b)
	if state, why := p.ini.State(); state != Suspended || why != Forgotten {
		t.Errorf("reset reason 200: state %v, %v; want %v, %v", state, why, Suspended, Forgotten)
	}
}

// answer gives the initiator a hello-ack.
func (p *pair) answer(m wire.HelloAckMsg) Event {
	b := make([]byte, 2048)
	h, payload, r := parse(b[:noKey.Reply(b, &wire.HelloMsg{Nonce: p.ini.p.Nonce}, 0, 1, m)])
	if r != wire.ReasonOK {
		p.t.Fatal(r)
	}
	return p.ini.Receive(p.now, &h, payload)
}

// The smallest frame is part of version 1. An encapsulation with longer headers than
// IPv6 and UDP needs a larger MTU.
func TestMinFrameIsFrozen(t *testing.T) {
	if MinFrame != 208 {
		t.Errorf("the smallest frame has %d bytes, in docs/wire-format.md 208", MinFrame)
	}
}
