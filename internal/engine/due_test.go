// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// leap steps both engines at the next moment at which one has something to do, and
// until they have nothing more. Just before, neither has anything to do.
func (bn *bench) leap() (more bool) {
	bn.t.Helper()
	for bn.a.Step()+bn.b.Step() > 0 {
		bn.now += 1000
	}
	a, b := bn.a.NextDue(), bn.b.NextDue()
	next := a
	if next == 0 || b != 0 && b < next {
		next = b
	}
	if next == 0 {
		return false
	}
	if next-1 > bn.now {
		bn.now = next - 1
		if bn.a.Step()+bn.b.Step() > 0 {
			bn.t.Fatalf("something was to be done before %v", time.Duration(next))
		}
	}
	bn.now = max(bn.now+1, next)
	return true
}

// A test that leaps from one deadline to the next sees hours in a few steps: idle
// sessions close, silent ones are given up and forgotten, and in the end nothing is
// due any more.
func TestNextDue(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	start := bn.now
	for bn.leap() {
	}
	took := time.Duration(bn.now - start)
	if r.fates[engine.Success] != 1 || took < session.IdleClose || took > session.IdleClose+time.Second {
		t.Errorf("an idle session was over after %v, with fates %v: want %v", took, r.fates, session.IdleClose)
	}

	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 2 })
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	start, leaps := bn.now, 0
	for bn.leap() && r.n < 3 {
		leaps++
	}
	if took := time.Duration(bn.now - start); r.fates[engine.Unknown] != 1 || took > 6*time.Second || leaps > 200 {
		t.Errorf("fates %v after %v in %d leaps, want one to be unknown after 5 s in at most 200", r.fates, took, leaps)
	}
	for bn.now < start+int64(time.Hour) && bn.leap() {
	}
	if took := time.Duration(bn.now - start); took < 90*time.Second || took >= time.Hour {
		t.Errorf("the last deadline was after %v, want at least that at which the target forgets its session", took)
	}
}
