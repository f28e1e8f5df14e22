// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// jumboBench is a bench with an MTU of 9000 whose sessions find out whether it passes.
// told has the length of frames if it does not, and 0 if it does after all.
func jumboBench(t *testing.T, seed uint64, f wire.Features, told func(wire.Link, int)) (bn *bench, p *engine.Peer, mem []byte) {
	return benchOfMTU(t, seed, 9000, f, told)
}

func benchOfMTU(t *testing.T, seed uint64, mtu int, f wire.Features, told func(wire.Link, int)) (bn *bench, p *engine.Peer, mem []byte) {
	if told == nil {
		told = func(wire.Link, int) {}
	}
	cfg := session.Config{GiveUp: 5 * time.Second, Features: wire.FeatureMemory | wire.FeatureEchoes | f}
	bn = newBenchOf(t, seed, mtu, cfg, func(c *engine.Config) {
		c.Narrow, c.Widened = told, func(l wire.Link) { told(l, 0) }
	})
	return bn, bn.peer(0), bn.region(1, 1<<17, mr.RemoteRead|mr.RemoteWrite)
}

// there moves bytes to the region and back, and returns how many packets went each way.
func (bn *bench) there(p *engine.Peer, mem []byte, n int) (to, fro int) {
	bn.t.Helper()
	b, back := make([]byte, n), make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8*3)
	}
	before := [2]int{bn.a.port.Sent, bn.b.port.Sent}
	if r := bn.move(p, wire.VerbWrite, 0, b); r.Outcome != engine.Success || !bytes.Equal(mem[:n], b) {
		bn.t.Fatalf("a write: %+v", r)
	}
	if r := bn.move(p, wire.VerbRead, 0, back); r.Outcome != engine.Success || !bytes.Equal(back, b) {
		bn.t.Fatalf("a read: %+v", r)
	}
	return bn.a.port.Sent - before[0], bn.b.port.Sent - before[1]
}

// Where a switch drops frames longer than Ethernet's, on the way there or back, sessions
// find out, have short ones, and say so. The next session knows it from the beginning,
// and tries again after a while. Elsewhere they have long ones.
func TestNarrowPath(t *testing.T) {
	const n = 100_000 // 12 frames of 9000 bytes, 81 of 1280
	for _, c := range []struct {
		name        string
		there, back int // longest packets; 0 for no limit
		narrow      bool
	}{{"wide", 0, 0, false}, {"narrow there", 1514, 0, true}, {"narrow back", 0, 1514, true}, {"narrow", 1514, 1514, true}} {
		t.Run(c.name, func(t *testing.T) {
			told := 0
			bn, p, mem := jumboBench(t, 1, wire.FeatureLongProbes, func(l wire.Link, frame int) {
				if frame == 0 { // an hour later
					return
				}
				if told++; l.Remote != macB || frame != 1280 {
					t.Errorf("frames of %d bytes to %v", frame, l.Remote)
				}
			})
			bn.a.port.SetLongest(c.there)
			bn.b.port.SetLongest(c.back)
			to, fro := bn.there(p, mem, n)
			if few := to < 40 && fro < 40; few == c.narrow {
				t.Errorf("%d and %d packets", to, fro)
			}
			want := map[bool]uint64{true: 1}[c.narrow]
			bn.a.Publish()
			if got := bn.a.Counters()[engine.PathsNarrow]; got != want || told != int(want) {
				t.Errorf("%d paths are narrow, told of %d, want %d", got, told, want)
			}
			bn.now += int64(session.IdleClose) + 1 // the next session
			bn.there(p, mem, n)
			bn.a.Publish()
			if got := bn.a.Counters()[engine.PathsNarrow]; got != want {
				t.Errorf("the next session has tried again: %d paths are narrow", got)
			}
			bn.a.port.SetLongest(0)
			bn.b.port.SetLongest(0)
			bn.now += int64(time.Hour)
			bn.there(p, mem, 100) // tries again beside it
			if to, fro := bn.there(p, mem, n); to > 40 || fro > 40 {
				t.Errorf("an hour later, with long frames on the way: %d and %d packets", to, fro)
			}
			bn.check()
		})
	}
}

// A path that drops long frames for a while when its first session begins, as virtio_net
// does until its receive buffers are new, costs that session seconds of short frames. It
// need not end for it, and is never held up.
func TestNarrowForAWhile(t *testing.T) {
	wide := 0
	bn, p, mem := jumboBench(t, 1, wire.FeatureLongProbes, func(l wire.Link, frame int) {
		if frame == 0 && l.Remote == macB {
			wide++
		}
	})
	bn.b.port.SetLongest(1514)
	bn.there(p, mem, 1000)
	bn.b.port.SetLongest(0)
	began := bn.now
	for wide == 0 {
		last := bn.now
		bn.there(p, mem, 1000)
		if took := time.Duration(bn.now - last); took > 100*time.Millisecond {
			t.Errorf("a write and a read took %v", took)
		}
		if bn.now += int64(50 * time.Millisecond); bn.now > began+int64(time.Minute) {
			t.Fatal("the session has short frames for a minute")
		}
	}
	if to, fro := bn.there(p, mem, 100_000); to > 40 || fro > 40 {
		t.Errorf("%d and %d packets", to, fro)
	}
	bn.a.Publish()
	if c := bn.a.Counters(); c[engine.SessionsOpened] != 1 || c[engine.PathsNarrow] != 1 || wide != 1 {
		t.Errorf("%d sessions, %d paths found narrow, told %d times that they are not", c[engine.SessionsOpened],
			c[engine.PathsNarrow], wide)
	}
}

// An overlay below hosts with an MTU of 1500 may carry less than they know of: 1450 bytes
// (VXLAN), 1420 (WireGuard), 1280. Short packets pass there, and so do sessions.
func TestNarrowOverlay(t *testing.T) {
	for _, carries := range []int{1280, 1420, 1450, 1499} {
		bn, p, mem := benchOfMTU(t, 1, 1500, wire.FeatureLongProbes, nil)
		bn.a.port.SetLongest(14 + carries)
		bn.b.port.SetLongest(14 + carries)
		bn.there(p, mem, 100_000)
		bn.a.Publish()
		if got := bn.a.Counters()[engine.PathsNarrow]; got != 1 {
			t.Errorf("the overlay carries %d bytes: %d paths are narrow, want 1", carries, got)
		}
		bn.check()
	}
}

// Loss of a few probes does not make a path narrow, and a target that does not know of
// them gets none.
func TestProbesAreLost(t *testing.T) {
	for seed := range uint64(20) {
		bn, p, mem := jumboBench(t, seed, wire.FeatureLongProbes, nil)
		bn.a.port.SetFaults(port.Faults{Loss: 0.1})
		bn.b.port.SetFaults(port.Faults{Loss: 0.1})
		bn.there(p, mem, 50_000)
		bn.a.Publish()
		if c := bn.a.Counters(); c[engine.PathsNarrow] != 0 || c[engine.Invalid] != 0 {
			t.Errorf("seed %d: %d paths are narrow, %d frames invalid", seed, c[engine.PathsNarrow], c[engine.Invalid])
		}
	}
	bn, p, mem := jumboBench(t, 1, 0, nil)
	if to, _ := bn.there(p, mem, 100_000); to > 40 {
		t.Errorf("%d packets to a target of an earlier version", to)
	}
}

// On a path that becomes narrow in the middle of a session, long frames are given up like
// those to a silent peer, and the next session has short ones.
func TestPathBecomesNarrow(t *testing.T) {
	bn, p, mem := jumboBench(t, 1, wire.FeatureLongProbes, nil)
	bn.there(p, mem, 100_000)
	bn.a.port.SetLongest(1514)
	bn.b.port.SetLongest(1514)
	began := bn.now
	if r := bn.move(p, wire.VerbWrite, 0, make([]byte, 100_000)); r.Outcome != engine.Unknown || bn.now-began > int64(10*time.Second) {
		t.Errorf("after %v the write ended as %+v", time.Duration(bn.now-began), r)
	}
	bn.there(p, mem, 100_000)
	bn.a.Publish()
	if got := bn.a.Counters()[engine.PathsNarrow]; got != 1 {
		t.Errorf("%d paths are narrow, want one", got)
	}
}

// proving begins a session with a write, and stops where its first long probe is about to
// leave.
func (bn *bench) proving(p *engine.Peer, r *results) {
	bn.t.Helper()
	bn.transfer(p, r, wire.VerbWrite, 0, 20_000, func(s *engine.Submission) { s.SetOperands(make([]byte, 20_000), nil) })
	bn.until(func() bool {
		bn.b.Publish()
		return bn.b.Counters()[engine.SessionsAccepted] == 1
	})
}

// A target, or a path, that is silent for seconds when a session begins is not taken for
// one on which long frames do not pass. Silence for the give-up time ends the session,
// and what waited for it never ran.
func TestSilenceIsNotNarrow(t *testing.T) {
	for _, silence := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 1300 * time.Millisecond,
		4 * time.Second, 20 * time.Second} {
		bn, p, mem := jumboBench(t, 1, wire.FeatureLongProbes, nil)
		var r results
		bn.proving(p, &r)
		bn.a.port.SetFaults(port.Faults{Loss: 1})
		end := bn.now + int64(silence)
		bn.until(func() bool { return bn.now >= end })
		bn.a.port.SetFaults(port.Faults{})
		bn.until(func() bool { return r.n == 1 })
		want := map[bool]engine.Outcome{false: engine.Success, true: engine.NotExecuted}[silence > 5*time.Second]
		if r.last.Outcome != want {
			t.Errorf("after %v of silence: %+v", silence, r.last)
		}
		if to, fro := bn.there(p, mem, 100_000); to > 40 || fro > 40 {
			t.Errorf("after %v of silence: %d and %d packets", silence, to, fro)
		}
		bn.a.Publish()
		if got := bn.a.Counters()[engine.PathsNarrow]; got != 0 {
			t.Errorf("after %v of silence %d paths are narrow", silence, got)
		}
	}
}

// A target whose program looks at its frames once in a while answers several probes at
// once, so that the length of what came has to be told by the one answer.
func TestSeldomIsNotNarrow(t *testing.T) {
	for _, pause := range []time.Duration{15 * time.Millisecond, 100 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		bn, p, _ := jumboBench(t, 1, wire.FeatureLongProbes, nil)
		var r results
		bn.proving(p, &r)
		for next := bn.now; r.n == 0; bn.now += int64(time.Millisecond) {
			if bn.a.Step(); bn.now >= next {
				next = bn.now + int64(pause)
				bn.b.Step()
			}
			if bn.now > int64(time.Minute) {
				t.Fatalf("steps every %v: nothing happens any more", pause)
			}
		}
		bn.a.Publish()
		if got := bn.a.Counters()[engine.PathsNarrow]; got != 0 || r.last.Outcome != engine.Success {
			t.Errorf("steps every %v: %d paths are narrow, %+v", pause, got, r.last)
		}
	}
}
