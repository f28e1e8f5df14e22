// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestExactlyOnceUnderFaults(t *testing.T) {
	faults := []struct {
		loss, dup float64
		jitter    int64
	}{
		{0, 0, 0}, {0.1, 0, 0}, {0, 0.5, 0}, {0, 0, 50_000}, {0.3, 0.5, 50_000}, {0.05, 0.05, 5_000_000},
	}
	for _, f := range faults {
		t.Run(fmt.Sprintf("loss%v/dup%v/jitter%v", f.loss, f.dup, time.Duration(f.jitter)), func(t *testing.T) {
			seeds := uint64(40)
			if testing.Short() {
				seeds = 8
			}
			for seed := range seeds {
				p := newPair(t, seed, Config{Window: 1 << (seed % 7), GiveUp: time.Hour})
				p.loss, p.dup, p.jitter = f.loss, f.dup, f.jitter
				p.open()
				p.run(300)
				p.check(300)
				for range 200 { // let duplicates and acks arrive
					p.step()
				}
				p.check(300)
				if lent := p.pools[0].Lent(); lent != 0 {
					t.Fatalf("seed %d: %d request buffers leaked", seed, lent)
				}
			}
		})
	}
}

// Without faults nothing is sent twice, and the cache is empty soon after.
func TestNoFaultNoResend(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	p.run(1000)
	p.check(1000)
	if p.ini.Resent != 0 || p.fresh != 1000 {
		t.Errorf("%d frames sent for 1000 requests, %d resent", p.fresh, p.ini.Resent)
	}
	for p.now < int64(time.Second) && p.step() {
	}
	if lent := p.pools[1].Lent() + p.pools[2].Lent(); lent != 0 {
		t.Errorf("%d buffers still cached a second after the last answer", lent)
	}
}

// One lost frame is repaired by the sack, one round trip later: no timeout.
func TestLostFrameRepairedBySack(t *testing.T) {
	for _, lost := range []string{"request", "response"} {
		t.Run(lost, func(t *testing.T) {
			p := newPair(t, 1, Config{})
			p.open()
			start := p.now
			for range 8 {
				p.post()
			}
			p.emit()
			if lost == "request" {
				p.toTgt = slices.Delete(p.toTgt, 2, 3)
			} else {
				p.step()
				p.emit()
				p.toIni = slices.Delete(p.toIni, 1, 2)
			}
			p.run(8)
			p.check(8)
			if took := p.now - start; took > 5*p.delay {
				t.Errorf("took %v, want at most 2 round trips of %v", time.Duration(took), time.Duration(2*p.delay))
			}
			if p.ini.Resent != 1 {
				t.Errorf("%d frames resent, want 1", p.ini.Resent)
			}
		})
	}
}

func TestForeignFramesAreRefused(t *testing.T) {
	p := newPair(t, 5, Config{})
	p.open()
	p.post()
	p.emit()
	bad := []struct {
		name string
		h    wire.Header
	}{
		{"stale epoch", wire.Header{Type: wire.Response, Epoch: p.ini.epoch + 1, PSN: p.ini.una, Ack: p.ini.una}},
		{"ack of the unsent", wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.una, Ack: p.ini.next}},
		{"ack from the distant past", wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.una, Ack: p.ini.una - 1000}},
		{"request to an initiator", wire.Header{Type: wire.Request, Epoch: p.ini.epoch, Ack: p.ini.una}},
	}
	for _, c := range bad {
		if ev := p.ini.Receive(p.now, &c.h, nil); ev.Kind != Refused {
			t.Errorf("%s: %v, want refused", c.name, ev.Kind)
		}
	}
	tgt := []struct {
		name string
		h    wire.Header
		want Verdict
	}{
		{"ack of what has not run", wire.Header{Type: wire.Request, PSN: p.tgt.expected, Ack: p.tgt.expected}, Invalid},
		{"far ahead", wire.Header{Type: wire.Request, PSN: p.tgt.expected + MaxWindow, Ack: p.tgt.expected - 1}, OutOfWindow},
		{"long ago", wire.Header{Type: wire.Request, PSN: p.tgt.expected - 1, Ack: p.tgt.expected - 1}, Stale},
		{"response to a target", wire.Header{Type: wire.Response, PSN: p.tgt.expected, Ack: p.tgt.expected - 1}, Invalid},
	}
	for _, c := range tgt {
		if v := p.tgt.Receive(p.now, &c.h, nil); v != c.want {
			t.Errorf("%s: verdict %v, want %v", c.name, v, c.want)
		}
	}
	if len(p.ran) != 0 {
		t.Error("something ran")
	}
}

// A frame that is held, but runs when it arrives again because there was no answer
// buffer in between, is not held any more: its slot belongs to a later psn.
func TestHeldFrameThatArrivesAgain(t *testing.T) {
	p := newPair(t, 5, Config{})
	p.open()
	first := p.tgt.expected
	request := func(psn uint32) Verdict {
		h := wire.Header{Type: wire.Request, PSN: psn, Ack: p.tgt.freed, Ops: 1}
		return p.tgt.Receive(p.now, &h, make([]byte, 8))
	}
	if v := request(first + 1); v != Held {
		t.Fatalf("early frame: %v", v)
	}
	if v := request(first); v != Execute {
		t.Fatalf("expected frame: %v", v)
	}
	p.tgt.Executed(p.tgt.Buffer(), 0, 1, 0)
	// There is no answer buffer now: the held frame stays where it is, and
	// arrives again.
	if v := request(first + 1); v != Execute {
		t.Fatalf("held frame that arrives again: %v", v)
	}
	p.tgt.Executed(p.tgt.Buffer(), 0, 1, 0)
	if _, _, _, ok := p.tgt.NextHeld(); ok || p.tgt.heldMask != 0 || p.pools[2].Lent() != 0 {
		t.Errorf("still held: mask %#x, %d buffers", p.tgt.heldMask, p.pools[2].Lent())
	}
}

func TestCookieIsBoundToTheHello(t *testing.T) {
	l := NewListener([32]byte{9})
	m := wire.HelloMsg{Nonce: 1, Session: 2, Endpoint: 3}
	m.Cookie = l.Cookie(5e9, &m, []byte("a"))
	other, later, foreign := m, m, m
	other.Nonce++
	later.Serial++
	foreign.Origin++
	switch {
	case !l.Proven(5e9, &m, []byte("a")):
		t.Error("own cookie refused")
	case !l.Proven(15e9, &m, []byte("a")):
		t.Error("cookie of the previous period refused")
	case l.Proven(35e9, &m, []byte("a")):
		t.Error("expired cookie accepted")
	case l.Proven(5e9, &m, []byte("b")):
		t.Error("cookie accepted from another address")
	case l.Proven(5e9, &other, []byte("a")):
		t.Error("cookie accepted for another nonce")
	case l.Proven(5e9, &later, []byte("a")), l.Proven(5e9, &foreign, []byte("a")):
		t.Error("cookie accepted for another session")
	case l.Proven(5e9, &wire.HelloMsg{}, []byte("a")):
		t.Error("no cookie accepted")
	}
}

// Steady state: one request and its answer through both machines.
func exchange(p *pair, b []byte) {
	buf := p.ini.Stage()
	psn := p.ini.Commit(p.now, buf, 24, 1, 0)
	n := p.ini.Emit(p.now, b)
	h, payload, _ := wire.Parse(b[:wire.Seal(b, n)])
	p.tgt.Receive(p.now, &h, payload)
	p.tgt.Executed(p.tgt.Buffer(), 8, 1, 0)
	n = p.tgt.Emit(b)
	h, payload, _ = wire.Parse(b[:wire.Seal(b, n)])
	p.ini.Receive(p.now, &h, payload)
	p.ini.Retire(p.now, psn)
}

func TestExchangeDoesNotAllocate(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	b := make([]byte, 2048)
	exchange(p, b)
	if n := testing.AllocsPerRun(1000, func() { exchange(p, b) }); n != 0 {
		t.Errorf("%v allocations per exchange, want 0", n)
	}
}

func BenchmarkExchange(b *testing.B) {
	p := newPair(b, 1, Config{})
	p.open()
	buf := make([]byte, 2048)
	b.ReportAllocs()
	for b.Loop() {
		exchange(p, buf)
	}
}
