// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// delaying is an open pair whose initiator may send frames at a time.
func delaying(t *testing.T, frames int, features wire.Features) *pair {
	p := newPair(t, 1, Config{Window: frames, StaticWindow: true, Features: features})
	p.open()
	return p
}

// marks sends all requests that are due, and returns for each whether its ack may be
// delayed.
func (p *pair) marks() (marks []bool) {
	b := make([]byte, 2048)
	for n := p.ini.Emit(p.now, b); n > 0; n = p.ini.Emit(p.now, b) {
		if h, _, _ := parse(b[:n]); h.Type == wire.Request {
			marks = append(marks, h.Flags&wire.FlagDelay != 0)
		}
		p.send(&p.toTgt, b[:n])
	}
	return marks
}

// Of requests that leave at once, every eighth has its ack at once, or more of them if
// the window is small, and so has the last one, unless more follow.
func TestDelayedRequests(t *testing.T) {
	for _, x := range []struct{ window, every int }{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {9, 4}, {15, 7}, {16, 8}, {64, 8}} {
		for _, more := range []bool{false, true} {
			p := delaying(t, x.window, wire.FeatureDelays)
			p.ini.Follow(more)
			sent := 0
			for p.post() {
				sent++
			}
			var want []bool
			for i := range sent {
				want = append(want, (i+1)%x.every != 0 && (more || i+1 < sent))
			}
			if got := p.marks(); !slices.Equal(got, want) || sent != x.window {
				t.Errorf("window %d, more %v: %v, want %v", x.window, more, got, want)
			}
		}
	}
}

// A session without the feature delays nothing, and one that waits for a window of
// congestion control counts that.
func TestDelaysNeedFeatureAndWindow(t *testing.T) {
	p := delaying(t, 64, wire.FeatureEchoes)
	p.ini.Follow(true)
	for p.post() {
	}
	if got := p.marks(); slices.Contains(got, true) {
		t.Errorf("without the feature: %v", got)
	}
	p = delaying(t, 64, wire.FeatureDelays)
	p.cfg.StaticWindow, p.ini.cc.window = false, 4
	p.ini.Follow(true)
	for p.post() {
	}
	if got, want := p.marks(), []bool{true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("window of 4: %v, want %v", got, want)
	}
}

// What is sent again has its ack at once, and the requests behind it are counted anew.
func TestResentIsNotDelayed(t *testing.T) {
	p := delaying(t, 64, wire.FeatureDelays)
	p.ini.Follow(true)
	for range 4 {
		p.post()
	}
	if got := p.marks(); !slices.Equal(got, []bool{true, true, true, true}) {
		t.Fatalf("the first four: %v", got)
	}
	p.ini.lose(p.now, p.ini.una)
	for range 8 {
		p.post()
	}
	if got, want := p.marks(), append([]bool{false}, true, true, true, true, true, true, true, false); !slices.Equal(got, want) {
		t.Errorf("one of them again, and eight more: %v, want %v", got, want)
	}
}

// The round trip of a request whose ack may have been delayed says nothing: it is no
// sample, and does not shut the window, but counts when the window opens.
func TestDelayIsNoQueue(t *testing.T) {
	p := delaying(t, 64, wire.FeatureDelays)
	p.cfg.StaticWindow = false
	p.ini.cc.start(64)
	for range 8 {
		p.post()
	}
	p.marks()
	p.toTgt = nil
	before, first := p.ini.rtt, p.ini.una
	for i := range uint32(7) {
		p.ini.Retire(p.now+1_000_000, first+i)
	}
	if p.ini.rtt.srtt != before.srtt || p.ini.cc.frames() != initialWindow {
		t.Errorf("delayed acks: round trip %d ns, was %d; window %d, want %d", p.ini.rtt.srtt, before.srtt, p.ini.cc.frames(), initialWindow)
	}
	p.ini.Retire(p.now+10_000, first+7)
	if p.ini.rtt.srtt == before.srtt || p.ini.cc.frames() != initialWindow+8 {
		t.Errorf("the last ack: round trip %d ns, was %d; window %d, want %d", p.ini.rtt.srtt, before.srtt, p.ini.cc.frames(), initialWindow+8)
	}
}

// A target delays nothing but the ack of a clean request that the initiator has marked,
// and that only as long as nothing else is due.
func TestTargetDelays(t *testing.T) {
	marked := wire.Header{Type: wire.Request, Flags: wire.FlagDelay}
	for name, x := range map[string]struct {
		change func(tgt *Target, h *wire.Header)
		want   bool
	}{
		"a marked request": {func(*Target, *wire.Header) {}, true},
		"not marked":       {func(_ *Target, h *wire.Header) { h.Flags = 0 }, false},
		"no request":       {func(_ *Target, h *wire.Header) { h.Type = wire.Probe }, false},
		"with a result":    {func(tgt *Target, h *wire.Header) { tgt.cache[h.PSN&slotMask].buf = tgt.spare }, false},
		"an ack is due":    {func(tgt *Target, _ *wire.Header) { tgt.infoDue = true }, false},
		"a gap":            {func(tgt *Target, _ *wire.Header) { tgt.nakDue = true }, false},
		"an echo is due":   {func(tgt *Target, _ *wire.Header) { tgt.echoDue = true }, false},
		"it ends":          {func(tgt *Target, _ *wire.Header) { tgt.resetDue = wire.ResetClosed }, false},
		"no room":          {func(tgt *Target, _ *wire.Header) { tgt.waits = true }, false},
		"one is held":      {func(tgt *Target, _ *wire.Header) { tgt.heldMask = 1 }, false},
		"one ran ahead":    {func(tgt *Target, _ *wire.Header) { tgt.ahead = 1 }, false},
	} {
		p := delaying(t, 64, wire.FeatureDelays)
		h := marked
		h.PSN = p.tgt.expected
		x.change(p.tgt, &h)
		if got := p.tgt.Delays(&h); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}
