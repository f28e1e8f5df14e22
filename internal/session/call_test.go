// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// withCalls is a session that has calls.
var withCalls = Config{Features: wire.FeatureUnordered | wire.FeatureCalls | wire.FeatureEchoes, GiveUp: 5 * time.Second}

// answerCall answers a request that a function had.
func (p *pair) answerCall(serial uint64) {
	for psn, s := range p.posted {
		if s == serial {
			p.tgt.Return(psn)
			b := p.tgt.Buffer()
			binary.LittleEndian.PutUint64(b, serial+1)
			p.tgt.Executed(b, 8, 1, 0)
			return
		}
	}
}

// untilDone steps until so many requests are done.
func (p *pair) untilDone(done int) {
	p.t.Helper()
	for range 10000 {
		if len(p.done) == done {
			return
		}
		p.step()
	}
	p.t.Fatalf("%d requests are done, want %d", len(p.done), done)
}

// While a function has a request, later ones are answered one after the other, and it is
// not sent again for each of them. It does not count against the window for congestion.
func TestCallsOvertakeCalls(t *testing.T) {
	p := newPair(t, 1, withCalls)
	slow := func(serial uint64) bool { return serial%2 == 0 && serial < 40 }
	p.aside = slow
	p.open()
	before := p.fresh
	for i := range 40 {
		if !p.post() {
			t.Fatalf("no room for request %d: %d frames are in flight", i, p.ini.InFlight())
		}
		p.untilDone((i + 1) / 2)
	}
	if n := p.fresh - before; n > 40+20*2 { // each slow one again before its target has told, and perhaps once more
		t.Errorf("40 requests took %d frames", n)
	}
	for i := 38; i >= 0; i -= 2 {
		p.answerCall(uint64(i))
	}
	p.untilDone(40)
	if len(p.ran) != 40 {
		t.Errorf("%d ran, want 40", len(p.ran))
	}
}

// A reply that is lost is asked for, though the target has said that it has the request,
// and though an earlier one waits for its function for long.
func TestLostReply(t *testing.T) {
	p := newPair(t, 1, withCalls)
	p.aside = func(serial uint64) bool { return serial < 2 }
	p.open()
	p.post()
	p.post()
	for range 20 { // the initiator learns that both are there
		p.step()
	}
	if p.ini.kept == 0 {
		t.Fatal("the initiator has not learnt what the target has")
	}
	p.answerCall(1)
	p.emit()
	p.toIni = nil // the reply among it
	p.untilDone(1)
	p.answerCall(0)
	p.untilDone(2)
}

// A request may be with its function for any time: the initiator waits as long as the
// target lives, and goes on with the session.
func TestFunctionTakesLong(t *testing.T) {
	p := newPair(t, 1, withCalls)
	p.aside = func(serial uint64) bool { return serial == 0 }
	p.open()
	p.post()
	for end := p.now + int64(10*IdleClose); p.now < end; {
		p.step()
		if st, why := p.ini.State(); st != Open || p.ini.Doubtful(p.now) {
			t.Fatalf("after %v: %v, %v, doubtful: %t", time.Duration(p.now), st, why, p.ini.Doubtful(p.now))
		}
	}
	p.post()
	p.untilDone(1)
	p.tgt = nil // which answers nothing from now on
	for range 10000 {
		if st, _ := p.ini.State(); st != Open {
			return
		}
		p.step()
	}
	t.Error("a silent target is not given up")
}

// Requests that functions have are in no queue of the network: others may follow.
func TestFunctionsAreNoCongestion(t *testing.T) {
	p := newPair(t, 1, withCalls)
	p.aside = func(uint64) bool { return true }
	p.open()
	for range MaxWindow {
		if !p.post() {
			for range 20 { // the initiator learns what is there
				p.step()
			}
			if !p.post() {
				t.Fatalf("no room, with %d frames in flight", p.ini.InFlight())
			}
		}
	}
	for i := range MaxWindow {
		p.answerCall(uint64(i))
	}
	p.untilDone(MaxWindow)
}
