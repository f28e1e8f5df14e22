// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Whether acks ride or have frames of their own, whatever is lost, each request runs and
// completes once, and no result is taken for granted.
func TestRidersUnderFaults(t *testing.T) {
	for _, unordered := range []wire.Features{0, wire.FeatureUnordered} {
		rode := 0
		for seed := range uint64(120) {
			p := newPair(t, seed, Config{Window: 1 << (seed % 7), GiveUp: time.Hour, Features: wire.FeatureRiders | unordered})
			p.riders = true
			if seed%4 > 0 {
				p.loss, p.dup, p.jitter = 0.2, 0.3, 50_000
			}
			p.open()
			p.run(300)
			p.check(300)
			rode += p.rode
			if lent := p.pools[0].Lent(); lent != 0 {
				t.Fatalf("seed %d: %d request buffers leaked", seed, lent)
			}
		}
		if rode < 120 {
			t.Errorf("features %v: %d riders in 120 runs", unordered, rode)
		}
	}
}

// An ack rides only if it says all that is due.
func TestRiderSaysAll(t *testing.T) {
	ran := func(t *testing.T, requests int) *pair {
		p := newPair(t, 1, Config{Features: wire.FeatureRiders})
		p.riders, p.serial = true, 1 // request 0 has a result
		p.open()
		for range requests {
			p.post()
		}
		for p.ini.Due() {
			b := make([]byte, 2048)
			p.target(b[:p.ini.Emit(p.now, b)])
		}
		return p
	}
	again := func(p *pair, psn uint32) {
		p.tgt.Receive(p.now, &wire.Header{Type: wire.Request, Flags: wire.FlagRetx, PSN: psn, Ack: p.tgt.freed, Ops: 1}, make([]byte, 8))
	}
	for _, c := range []struct {
		name   string
		change func(p *pair)
		rides  bool
	}{
		{"requests have succeeded", func(*pair) {}, true},
		{"the ack was sent already", func(p *pair) { p.tgt.Rider() }, false},
		{"a duplicate has come", func(p *pair) { again(p, p.tgt.expected-1) }, false},
		{"only a duplicate is due", func(p *pair) { p.tgt.Rider(); again(p, p.tgt.expected-1) }, false},
		{"one has a result", func(p *pair) { p.tgt.turn = p.tgt.expected; p.execute(make([]byte, 8)) }, false},
		{"a frame is missing", func(p *pair) { again(p, p.tgt.expected+1) }, false},
		{"a probe waits", func(p *pair) { p.tgt.Receive(p.now, &wire.Header{Type: wire.Probe, PSN: 1, Ack: p.tgt.freed}, nil) }, false},
		{"the next one waits for room", func(p *pair) { p.tgt.waits = true }, false},
		{"the session ends", func(p *pair) { p.tgt.Shutdown(wire.ResetClosed) }, false},
		{"another session follows", func(p *pair) { p.tgt.Freeze(p.now, p.tgt.freed) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ran(t, 3)
			c.change(p)
			last := p.tgt.expected - 1
			if r, ok := p.tgt.Rider(); ok != c.rides || ok && r != (wire.Rider{Session: uint32(p.ini.p.Local), PSN: last}) {
				t.Errorf("%+v, %t; want %t", r, ok, c.rides)
			}
			if c.rides && p.tgt.Due() {
				t.Error("something is due although the ack rides")
			}
		})
	}
}

// An initiator believes no rider about what it has not sent.
func TestRiderOfTheUnsent(t *testing.T) {
	p := newPair(t, 1, Config{Features: wire.FeatureRiders})
	p.open()
	for range 3 {
		p.post()
	}
	p.emit()
	for _, c := range []struct {
		psn  uint32
		want Answer
	}{
		{p.ini.next, Refused}, {p.ini.una - 1000, Refused}, {p.ini.una - 1, Nothing}, {p.ini.una + 1, Succeeded},
	} {
		if ev := p.ini.Ridden(p.now, c.psn); ev.Kind != c.want || c.want == Succeeded && (ev.First != p.ini.una || ev.Last != c.psn) {
			t.Errorf("psn %d of %d to %d: %+v, want %v", c.psn, p.ini.una, p.ini.next, ev, c.want)
		}
	}
	p.ini.Close(Idle)
	if ev := p.ini.Ridden(p.now, p.ini.una); ev.Kind != Nothing {
		t.Errorf("of a closed session: %+v", ev)
	}
}
