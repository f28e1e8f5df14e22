// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The outcome of an operation whose context has ended becomes known when the operation
// ends, and nothing is written to the caller's memory after the call.
func TestResolveAfterDeadline(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Address(0))
		if err != nil {
			t.Fatal(err)
		}
		v, err := xdpfab.Vector[uint64](ctx(t), p, "r")
		if err != nil {
			t.Fatal(err)
		}
		f.client.SetFaults(port.Faults{Loss: 1})
		short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		sums := []uint64{77}
		err = v.Add(short, []uint64{3}, []uint64{5}, sums)
		var oe *xdpfab.OpError
		if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &oe) {
			t.Fatalf("with a deadline, in a partition: %v", err)
		}
		if !oe.Open() {
			t.Error("nothing to be known later")
		}
		again, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if _, _, err := oe.Resolve(again); !errors.Is(err, context.DeadlineExceeded) || !oe.Open() {
			t.Errorf("Resolve in a partition: %v", err)
		}
		f.client.SetFaults(port.Faults{})
		ran, result, err := oe.Resolve(ctx(t))
		if err != nil || !ran || len(result) != 8 || binary.LittleEndian.Uint64(result) != 0 {
			t.Fatalf("resolved: ran %t, result %v, %v", ran, result, err)
		}
		if oe.Open() {
			t.Error("open still")
		}
		if sums[0] != 77 {
			t.Errorf("the caller's memory was changed: %d", sums[0])
		}
		if got := binary.LittleEndian.Uint64(f.mem[24:]); got != 5 {
			t.Errorf("the word is %d, want 5", got)
		}
		if ran, _, err := oe.Resolve(ctx(t)); !ran || err != nil {
			t.Errorf("resolved again: %t, %v", ran, err)
		}
	})
}

// A deadline, then a partition that outlasts the give-up time, then its end: the
// outcome still becomes a fact.
func TestResolveAfterDeadlineAndPartition(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{GiveUp: 100 * time.Millisecond}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, 1, 0)
	if _, err := w.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	f.client.SetFaults(port.Faults{Loss: 1})
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	var oe *xdpfab.OpError
	if _, err := w.Add(short, 1); !errors.As(err, &oe) {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 1); err == nil { // until the session is given up
		t.Fatal("success in a partition")
	}
	f.client.SetFaults(port.Faults{})
	if ran, _, err := oe.Resolve(ctx(t)); ran || err != nil {
		t.Errorf("resolved: ran %t, %v", ran, err)
	}
}

// What is known is told also after Close, and what never will be is not waited for.
func TestResolveAfterClose(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, 1, 0)
	f.client.SetFaults(port.Faults{Loss: 1})
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	var oe *xdpfab.OpError
	if _, err := w.Add(short, 1); !errors.As(err, &oe) {
		t.Fatal(err)
	}
	if err := f.client.CloseAll(); err != nil {
		t.Fatal(err)
	}
	if ran, _, err := oe.Resolve(ctx(t)); ran || !errors.Is(err, xdpfab.ErrOutcomeUnknown) || oe.Open() {
		t.Errorf("after Close: ran %t, %v", ran, err)
	}
}

// Two dials of one endpoint are one session: closing one use leaves the other.
func TestOneSessionForAnEndpoint(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.client.Dial(ctx(t), f.server.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	v, w := xdpfab.WordAt[uint64](p, 1, 0), xdpfab.WordAt[uint64](q, 1, 0)
	if _, err := v.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	watch := make(chan error)
	go func() { watch <- p.Watch(ctx(t)) }()
	time.Sleep(10 * time.Millisecond)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-watch; !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("a watch of a closed peer: %v", err)
	}
	if n, err := w.Add(ctx(t), 1); n != 2 || err != nil {
		t.Errorf("the other use: %d, %v", n, err)
	}
	if _, err := v.Add(ctx(t), 1); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("a closed use: %v", err)
	}
	counted := func(want uint64) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			c, err := f.server.Counters()
			if err != nil {
				t.Fatal(err)
			}
			if c["sessions_accepted"] == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d sessions, want %d", c["sessions_accepted"], want)
			}
		}
	}
	counted(1)
}
