// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// When the path changes while a session finds out how long frames may be, it begins anew:
// a probe of full length leaves at once, those before count neither as lost nor, if their
// echoes come late, as a proof, and the target is not taken for a silent one.
func TestProofBeginsAnew(t *testing.T) {
	p := newPair(t, 1, Config{Features: wire.FeatureEchoes | wire.FeatureLongProbes})
	p.ini.p.Sure = 600
	p.open()
	if !p.ini.proving() {
		t.Fatal("the session opens without a proof")
	}
	p.emit()
	for range 2 * proofMisses {
		p.ini.Hurry(p.now)
		p.ini.Tick(p.now)
		b := make([]byte, 2048)
		if n := p.ini.Emit(p.now, b); n != 1500 {
			t.Fatalf("a frame of %d bytes, want a probe of 1500", n)
		}
		if p.ini.Troubled() || p.ini.Due() {
			t.Fatalf("troubled: %t, more is due: %t", p.ini.Troubled(), p.ini.Due())
		}
	}
	first := p.toTgt[0].frame
	p.toTgt = nil
	p.target(first)
	p.emit()
	if len(p.toIni) != 1 || len(p.toIni[0].frame) != 1500 {
		t.Fatalf("%d frames answer the first probe", len(p.toIni))
	}
	p.initiator(p.toIni[0].frame)
	if p.toIni = nil; !p.ini.proving() {
		t.Error("an echo by the former path proves the present one")
	}
	p.run(100)
	p.check(100)
	if p.ini.proving() || p.ini.payload != 1500-wire.HeaderLen {
		t.Errorf("proving: %t, payloads of %d bytes", p.ini.proving(), p.ini.payload)
	}
}

// sure is the longest frame that passes for certain in these tests, and full that which
// is to be proven.
const sure, full = 600, 1500

// until has time pass, on a path that loses long frames, and calls tried with the time of
// each long probe that is lost.
func (p *pair) until(end int64, tried func(at int64)) {
	p.t.Helper()
	lost := func(f flight) bool {
		if len(f.frame) > sure {
			tried(p.now)
		}
		return len(f.frame) > sure
	}
	for p.now < end {
		if state, why := p.ini.State(); state == Closed {
			p.t.Fatalf("closed: %v", why)
		}
		p.emit()
		p.toTgt = slices.DeleteFunc(p.toTgt, lost)
		p.step()
	}
}

// narrowPair is an open session that has found its path narrow.
func narrowPair(t *testing.T) *pair {
	t.Helper()
	p := newPair(t, 1, Config{Features: wire.FeatureEchoes | wire.FeatureLongProbes})
	p.ini.p.Sure = sure
	p.open()
	for range 1000 {
		if p.until(p.now+1, func(int64) {}); !p.ini.proving() {
			break
		}
	}
	if p.ini.payload != sure-wire.HeaderLen || !slices.ContainsFunc(p.events, func(ev Event) bool { return ev.Kind == Narrowed }) {
		t.Fatalf("payloads of %d bytes, want those of a narrow path", p.ini.payload)
	}
	p.events = nil
	return p
}

// A narrow session tries long frames again, first after two seconds and in the end every
// ten minutes, and nothing of it delays requests.
func TestNarrowIsTriedSeldomer(t *testing.T) {
	p := narrowPair(t)
	p.ini.Watch(p.now, true)
	began, tries := p.now, []int64(nil)
	p.until(began+int64(time.Hour), func(at int64) {
		tries = append(tries, at)
		if b := p.ini.Stage(); b == nil || len(b) != sure-wire.HeaderLen {
			t.Fatalf("room for a request of %d bytes", len(b))
		} else {
			p.ini.Unstage(b)
		}
	})
	want, at := []time.Duration(nil), began
	for pause := 2 * time.Second; at+int64(pause) < began+int64(time.Hour); pause = min(2*pause, 10*time.Minute) {
		at += int64(pause)
		want = append(want, pause)
	}
	if len(tries) != len(want) {
		t.Fatalf("%d tries in an hour, want %d", len(tries), len(want))
	}
	last := began
	for i, at := range tries {
		if got := time.Duration(at - last).Round(100 * time.Millisecond); got != want[i] {
			t.Errorf("try %d after %v, want %v", i, got, want[i])
		}
		last = at
	}
	p.run(100)
	p.check(100)
	if slices.ContainsFunc(p.events, func(ev Event) bool { return ev.Kind == Narrowed }) {
		t.Error("the session is told narrow once more")
	}
}

// Long frames that pass by now are used from the first echo on. A session without work
// closes as soon as any other.
func TestNarrowIsOver(t *testing.T) {
	p := narrowPair(t)
	p.run(10)
	began := p.now
	for p.now < began+int64(2*time.Second) || len(p.toTgt)+len(p.toIni) > 0 {
		p.step()
	}
	if p.ini.payload != full-wire.HeaderLen || p.ini.Narrow() != (Narrow{}) {
		t.Errorf("payloads of %d bytes after %v; %+v", p.ini.payload, time.Duration(p.now-began), p.ini.Narrow())
	}
	if n := len(slices.DeleteFunc(p.events, func(ev Event) bool { return ev.Kind != Widened })); n != 1 {
		t.Errorf("told %d times", n)
	}
	p.run(20)
	p.check(20)

	p = narrowPair(t)
	p.run(10)
	for state := Open; state != Closed; state, _ = p.ini.State() {
		if d := p.ini.Deadline(); d > p.ini.workedAt+int64(IdleClose) {
			t.Fatalf("sleeps for %v longer than an idle session may", time.Duration(d-p.ini.workedAt-int64(IdleClose)))
		}
		p.emit()
		p.toTgt = nil
		p.step()
	}
}

// The next session of a narrow path begins with short frames at once, and goes on where
// the one before stopped trying. After a change of the path it tries at once, and an echo
// by the former path proves nothing.
func TestNarrowIsHandedOn(t *testing.T) {
	was := narrowPair(t)
	p := newPair(t, 2, was.cfg)
	p.ini = NewInitiator(&p.cfg, p.pools[0], Params{Local: wire.NewSessionID(1, 2, 3, 4), Lane: 5, Endpoint: 6, MaxFrame: full, Nonce: 9,
		Sure: sure, Narrow: was.ini.Narrow()}, p.now)
	p.open()
	if p.ini.proving() || p.ini.payload != sure-wire.HeaderLen || p.ini.Narrow() != was.ini.Narrow() {
		t.Fatalf("proving: %t, payloads of %d bytes, %+v", p.ini.proving(), p.ini.payload, p.ini.Narrow())
	}
	p.emit()
	p.ini.tryDue = true // as if it were time
	p.emit()
	if n := len(p.toTgt); n == 0 || len(p.toTgt[n-1].frame) != full {
		t.Fatalf("no long probe among %d frames", n)
	}
	p.target(p.toTgt[len(p.toTgt)-1].frame)
	p.toTgt = nil
	p.ini.Hurry(p.now)
	if !p.ini.Due() {
		t.Error("the present path is not tried")
	}
	b := make([]byte, 2048)
	if n := p.ini.Emit(p.now, b); n != full {
		t.Errorf("a probe of %d bytes", n)
	}
	for p.emit(); len(p.toIni) > 0; p.toIni = p.toIni[1:] {
		p.initiator(p.toIni[0].frame)
	}
	if p.ini.payload != sure-wire.HeaderLen {
		t.Error("an echo by the former path proves the present one")
	}
	p.send(&p.toTgt, b[:full])
	p.run(10)
	if p.check(10); p.ini.payload != full-wire.HeaderLen {
		t.Errorf("payloads of %d bytes", p.ini.payload)
	}
	if p.ini.Hurry(p.now); p.ini.tryDue || p.ini.Narrow() != (Narrow{}) {
		t.Error("a path that is not narrow is tried")
	}
}
