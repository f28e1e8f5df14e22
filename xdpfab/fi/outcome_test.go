// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The outcome of an operation whose context ended becomes known when the operation
// ends, and nothing is written to the caller's memory after the call.
func TestResolveAfterDeadline(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		v, err := xdpfab.Vector[uint64](ctx(t), p, "r")
		if err != nil {
			t.Fatal(err)
		}
		_ = cableOf(f.client).SetFaults(fi.Faults{Loss: 1})
		sums := []uint64{77}
		err = interruptedAfter(t, f, "ops_sent", func(c context.Context) error {
			return v.Add(c, []uint64{3}, []uint64{5}, sums)
		})
		var oe *fi.OpError
		if !errors.Is(err, fi.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &oe) {
			t.Fatalf("with a deadline, in a partition: %v", err)
		}
		if !oe.Open() {
			t.Error("nothing to be known later")
		}
		err = interruptedAfter(t, f, "frames_resent", func(c context.Context) error {
			_, _, err := oe.Resolve(c)
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) || !oe.Open() {
			t.Errorf("Resolve in a partition: %v", err)
		}
		_ = cableOf(f.client).SetFaults(fi.Faults{})
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

// interruptedAfter returns what op returns when its context ends as a deadline ends it:
// as soon as a counter of the client has grown, so that what op began is under way for
// sure.
func interruptedAfter(t *testing.T, f *fixture, name string, op func(context.Context) error) error {
	t.Helper()
	client := cableOf(f.client)
	before := counter(t, client, name)
	c, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- op(c) }()
	testnet.Eventually(t, name+" grows", func() bool {
		if len(done) > 0 {
			t.Fatalf("ended before its context: %v", <-done)
		}
		return counter(t, client, name) > before
	})
	cancel(context.DeadlineExceeded)
	return <-done
}

// A deadline, then a partition that outlasts the give-up time, then its end: the
// outcome still becomes a fact.
func TestResolveAfterDeadlineAndPartition(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		clock, a := fi.NewClock(a)
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		if _, err := w.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		_ = cableOf(f.client).SetFaults(fi.Faults{Loss: 1})
		add := func(c context.Context) error {
			_, err := w.Add(c, 1)
			return err
		}
		var oe *fi.OpError
		if err := interruptedAfter(t, f, "ops_sent", add); !errors.As(err, &oe) || !oe.Open() {
			t.Fatal(err)
		}
		if err := afterSilence(t, clock, f, func() error { return add(ctx(t)) }); !errors.Is(err, fi.ErrPeerSilent) {
			t.Fatalf("in a partition: %v", err)
		}
		_ = cableOf(f.client).SetFaults(fi.Faults{})
		if ran, _, err := oe.Resolve(ctx(t)); ran || err != nil {
			t.Errorf("resolved: ran %t, %v", ran, err)
		}
	})
}

// A known outcome is told also after Close, and one that will never be known is not
// waited for.
func TestResolveAfterClose(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		_ = cableOf(f.client).SetFaults(fi.Faults{Loss: 1})
		err = interruptedAfter(t, f, "ops_sent", func(c context.Context) error {
			_, err := w.Add(c, 1)
			return err
		})
		var oe *fi.OpError
		if !errors.As(err, &oe) || !oe.Open() {
			t.Fatal(err)
		}
		if err := f.client.CloseAll(); err != nil {
			t.Fatal(err)
		}
		if ran, _, err := oe.Resolve(ctx(t)); ran || !errors.Is(err, fi.ErrOutcomeUnknown) || oe.Open() {
			t.Errorf("after Close: ran %t, %v", ran, err)
		}
	})
}

// Two dials of one endpoint are one session: closing one use leaves the other.
func TestOneSessionForAnEndpoint(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	v, w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0), xdpfab.WordAt[uint64](q, fi.RemoteRegion{Key: 1}, 0)
	if _, err := v.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	watch := make(chan error)
	go func() { watch <- p.Watch(ctx(t)) }()
	testnet.Eventually(t, "the watch is under way", func() bool { return callsOf(f.client, p) > 0 })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-watch; !errors.Is(err, fi.ErrClosed) {
		t.Errorf("a watch of a closed peer: %v", err)
	}
	if n, err := w.Add(ctx(t), 1); n != 2 || err != nil {
		t.Errorf("the other use: %d, %v", n, err)
	}
	if _, err := v.Add(ctx(t), 1); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("a closed use: %v", err)
	}
	if n := counter(t, f.server, "sessions_accepted"); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}
