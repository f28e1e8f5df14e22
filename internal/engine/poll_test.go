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

// polls lets both nodes poll so many times, each time after a pause in ns.
func (bn *bench) polls(n int, pause int64) {
	for range n {
		bn.now += pause
		bn.a.Poll()
		bn.b.Poll()
	}
}

// connected returns two nodes that poll in a tight loop, with a session between them.
func connected(t *testing.T) (*bench, *engine.Peer) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	for range 100_000 {
		bn.polls(1, 100)
	}
	if r.n != 1 {
		t.Fatal("not connected after 10 ms")
	}
	return bn, p
}

// lost tells when an operation whose packets are all lost is sent again, and when it
// ends, if the caller polls in a tight loop first, quick times, and then with pauses.
type lost struct {
	resent, ended int64 // ns after the first pause
}

func lose(t *testing.T, quick int, pause int64, poll func(*engine.Engine) int) (l lost) {
	bn, p := connected(t)
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	for range quick {
		bn.now += 100
		poll(bn.a.Engine)
	}
	began, sent := bn.now, bn.a.port.Sent
	for r.n == 0 {
		if bn.now += pause; bn.now-began > int64(time.Hour) {
			t.Fatal("not given up within an hour")
		}
		poll(bn.a.Engine)
		if l.resent == 0 && bn.a.port.Sent > sent {
			l.resent = bn.now - began
		}
	}
	l.ended = bn.now - began
	return l
}

// A caller that calls rarely, after a tight loop, has its timers run at most three calls
// later than one that looks at the clock each time. One that has called rarely for a
// while gets them in the same call.
func TestPollRunsTimersOfRareCallers(t *testing.T) {
	most := 1004
	if testing.Short() {
		most = 1001
	}
	for _, pause := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		for quick := 1000; quick < most; quick++ { // the next look at the clock is one to four calls away
			step := lose(t, quick, int64(pause), (*engine.Engine).Step)
			poll := lose(t, quick, int64(pause), (*engine.Engine).Poll)
			if step.resent == 0 || poll.resent > step.resent+3*int64(pause) {
				t.Errorf("calls every %v: sent again after %v, with Step after %v", pause, time.Duration(poll.resent), time.Duration(step.resent))
			}
			// Lateness does not add up. Only if the four calls took longer than
			// session.Stalled does the silence count from the fourth, as when the process
			// was stopped.
			late := 3 * pause
			if 4*pause > session.Stalled {
				late = 4 * pause
			}
			if poll.ended > step.ended+int64(late) {
				t.Errorf("calls every %v: given up after %v, with Step after %v", pause, time.Duration(poll.ended), time.Duration(step.ended))
			}
		}
	}
}

// In a tight loop with nothing to do, one call in four looks at the clock; a rare caller
// looks each time; and so does a caller that comes back after it got something.
func TestPollLooksAtTheClock(t *testing.T) {
	bn, p := connected(t)
	count := func(n int, pause int64) int {
		before := bn.looks
		for range n {
			bn.now += pause
			bn.a.Poll()
		}
		return bn.looks - before
	}
	if got := count(400, 100); got != 100 {
		t.Errorf("%d looks in 400 quick calls, want 100", got)
	}
	count(4, int64(time.Millisecond))
	if got := count(100, int64(time.Millisecond)); got != 100 {
		t.Errorf("%d looks in 100 rare calls, want 100", got)
	}
	count(8, 100)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	for r.n == 0 {
		bn.polls(1, 100)
	}
	if got := count(1, int64(time.Second)); got != 1 {
		t.Error("no look after a call that had something to do")
	}
}

// An idle round of an engine that has the system's clock.
func BenchmarkIdleRound(b *testing.B) {
	for name, round := range map[string]func(*engine.Engine) int{
		"Step": (*engine.Engine).Step, "Poll": (*engine.Engine).Poll, "Spin": (*engine.Engine).Spin,
	} {
		b.Run(name, func(b *testing.B) {
			p, _ := port.NewMemoryPair(1500, 1)
			e, err := engine.New(engine.Config{Port: p, Local: macA, MTU: 1500})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				round(e)
			}
		})
	}
}
