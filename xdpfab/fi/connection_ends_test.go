// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The side that was told of the end of a connection is not changed by the other one,
// which lives on; and that one is told too.
func TestConnectionEndsForBoth(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		clock, a := fi.NewClock(a)
		x := setUpBoth(t, a, fi.DomainAttr{}, 64)
		s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
		m, err := mr.Memfd("caller", 4096)
		s.ok(err)
		t.Cleanup(func() { _ = m.Close() })
		key := uint64(1)
		_, err = x.client.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		s.ok(err)
		caller, callee := s.connect()
		s.ok(callee.Atomic(s.add(0), 0)) // the session of the callee executes
		s.ok(driving(t, s.farCQ, x.client))
		if c := s.take(s.farCQ, 1)[0]; c.Err != nil {
			t.Fatal(c.Err)
		}
		cut := func(loss float64) {
			s.ok(errors.Join(cableOf(x.client).SetFaults(fi.Faults{Loss: loss}), x.server.SetFaults(fi.Faults{Loss: loss})))
		}
		cut(1)
		testnet.Eventually(t, "the end at the caller", func() bool {
			clock.Forward(5*time.Second, cableOf(x.client).Domain) // for the callee no time passes
			_, ok, err := s.near.Peek()
			return ok || err != nil
		})
		s.next(s.near, fi.EventShutdown, caller)
		cut(0)
		s.ok(callee.Atomic(s.add(0), 0))
		s.ok(driving(t, s.farCQ, x.client))
		if c := s.take(s.farCQ, 1)[0]; !errors.Is(c.Err, fi.ErrNotExecuted) {
			t.Errorf("operation of the callee after the end: %+v, want ErrNotExecuted", c)
		}
		if got := binary.LittleEndian.Uint64(m.Bytes()); got != 1 {
			t.Errorf("the caller's word is %d, want 1", got)
		}
		s.next(s.far, fi.EventShutdown, callee)
		if err := callee.Atomic(s.add(0), 0); !errors.Is(err, fi.ErrNotConnected) {
			t.Errorf("post of the callee: %v", err)
		}
	})
}

// So it is when the side that was told is the one that accepted, also as a guest,
// for which its host ends the sessions.
func TestConnectionEndsForTheCallee(t *testing.T) {
	for _, b := range []fi.DomainAttr{{}, {Attach: fi.AttachAlways}} {
		clock, b := fi.NewClock(b)
		x := setUpBoth(t, fi.DomainAttr{}, b, 64)
		s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
		caller, callee := s.connect()
		s.ok(caller.Atomic(s.add(0), 0)) // the session of the caller executes
		if c := s.take(s.nearCQ, 1)[0]; c.Err != nil {
			t.Fatal(c.Err)
		}
		cut := func(loss float64) {
			faults := fi.Faults{Loss: loss}
			s.ok(errors.Join(x.client.SetFaults(faults), cableOf(x.server).SetFaults(faults)))
		}
		cut(1)
		testnet.Eventually(t, "the end at the callee", func() bool {
			clock.Forward(5*time.Second, cableOf(x.server).Domain) // for the caller no time passes
			_, ok, err := s.far.Peek()
			return ok || err != nil
		})
		s.next(s.far, fi.EventShutdown, callee)
		cut(0)
		s.ok(caller.Atomic(s.add(0), 0))
		if c := s.take(s.nearCQ, 1)[0]; !errors.Is(c.Err, fi.ErrNotExecuted) {
			t.Errorf("operation of the caller after the end: %+v, want ErrNotExecuted", c)
		}
		if got := x.word(0); got != 1 {
			t.Errorf("the callee's word is %d, want 1", got)
		}
		s.next(s.near, fi.EventShutdown, caller)
		if err := caller.Atomic(s.add(0), 0); !errors.Is(err, fi.ErrNotConnected) {
			t.Errorf("post of the caller: %v", err)
		}
	}
}

// A side whose peer has had a connection is told that there was one, and that it has
// ended, also if it did not get one to the peer itself.
func TestConnectionEndsSoon(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		for _, guest := range []bool{false, true} { // the server
			b := fi.DomainAttr{}
			if guest {
				b.Attach = fi.AttachAlways
			}
			x := setUpBoth(t, a, b, 64)
			s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
			for range reduced(20, 5) {
				caller := s.caller()
				s.ok(caller.Connect(ctx(t), s.pep.Name(), nil))
				callee := s.callee(s.next(s.far, fi.EventConnReq, s.pep).Request)
				s.ok(callee.Accept(ctx(t), nil))
				s.next(s.near, fi.EventConnected, caller)
				s.ok(caller.Atomic(s.add(0), 0))
				if c := s.take(s.nearCQ, 1)[0]; c.Err != nil {
					t.Fatal(c.Err)
				}
				s.ok(caller.Disconnect())
				for _, kind := range []fi.EventKind{fi.EventConnected, fi.EventShutdown} {
					if e := s.next(s.far, kind, callee); e.Err != nil {
						t.Fatalf("%v at the side that accepted: %v", kind, e.Err)
					}
				}
				s.ok(errors.Join(caller.Close(), callee.Close()))
			}
			empty(t, s.far)
		}
	})
}
