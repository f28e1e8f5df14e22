// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// Options shape a wire. The zero value is a good choice.
type Options struct {
	Seed  uint64 // of all random decisions
	MTU   int    // bytes; 0 means 1500
	Queue int    // frames that a direction can delay at the same time; 0 means 8192
}

// Wire is an open wire between A and B. Its methods are safe from any goroutine.
type Wire struct {
	A, B *testnet.Side // where the nodes live

	pairs [2]*veth.Pair // A and the wire's end towards it; the wire's other end and B
	ports [2]port
	lanes [directions]lane
	start time.Time
	wake  int // eventfd that ends the goroutine's sleep
	stop  atomic.Bool
	done  chan struct{}
	err   error // why the goroutine ended early; written by it before done is closed
}

// New opens a wire for a test, which is skipped if it may not make namespaces,
// and closes it when the test is over.
func New(t testing.TB, o Options) *Wire {
	t.Helper()
	testnet.Require(t)
	testnet.SkipOnNICs(t, "a wire with faults, between veths")
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("closing the wire: %v", err)
		}
	})
	return w
}

// Open opens a wire. It needs CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_NET_RAW and
// CAP_BPF. On error nothing is left behind; otherwise call Close.
func Open(o Options) (*Wire, error) {
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.Queue == 0 {
		o.Queue = 8192
	}
	// A chunk of 2048 bytes has 1792 for the frame, one of 4096 has 3840; veth
	// with XDP stops at an MTU of 3498.
	chunk := 2048
	if o.MTU > 1700 {
		chunk = 4096
	}
	if o.MTU < 256 || o.MTU > 3498 || o.Queue < 1 {
		return nil, fmt.Errorf("faultwire: %+v: want an MTU of 256 to 3498 and a queue of at least 1", o)
	}
	w := &Wire{wake: -1, start: time.Now(), done: make(chan struct{})}
	if err := w.open(o, chunk); err != nil {
		close(w.done)
		return nil, errors.Join(fmt.Errorf("faultwire: %w", err), w.Close())
	}
	go w.run()
	return w, nil
}

func (w *Wire) open(o Options, chunk int) (err error) {
	for i := range w.pairs {
		if w.pairs[i], err = veth.New(veth.Options{MTU: o.MTU}); err != nil {
			return err
		}
	}
	w.A, w.B = w.pairs[0].A, w.pairs[1].B
	for i, side := range []*testnet.Side{w.pairs[0].B, w.pairs[1].A} {
		if err := w.ports[i].open(side, chunk); err != nil {
			return fmt.Errorf("the end towards %c: %w", 'A'+i, err)
		}
	}
	for d := range w.lanes {
		l := &w.lanes[d]
		l.from, l.to = &w.ports[d], &w.ports[1-d]
		l.rnd = rand.New(rand.NewPCG(o.Seed, uint64(d)))
		l.queue = delayQueue{limit: o.Queue, size: chunk}
		l.scratch = make([]byte, chunk)
		l.faults.Store(&Faults{Storm: 1})
	}
	w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return err
}

// Set changes what a direction does to the frames that arrive from now on. It
// panics if the faults are impossible: that is a mistake in the test.
func (w *Wire) Set(d Direction, f Faults) {
	f, err := f.check()
	if err != nil {
		panic(err)
	}
	w.lanes[d].faults.Store(&f)
}

// SetBoth changes both directions.
func (w *Wire) SetBoth(f Faults) {
	w.Set(AtoB, f)
	w.Set(BtoA, f)
}

// Stats returns what has happened so far.
func (w *Wire) Stats() (s Stats) {
	for d := range w.lanes {
		for e := range s[d] {
			s[d][e] = w.lanes[d].counts[e].Load()
		}
	}
	return s
}

// Close ends the forwarding, drops delayed frames, and removes sockets and
// namespaces. Nodes should be closed before. It is idempotent; the error is that
// of the forwarding or of the removal.
func (w *Wire) Close() error {
	if w.stop.Swap(true) {
		return nil
	}
	var errs []error
	if w.wake >= 0 {
		one := binary.NativeEndian.AppendUint64(nil, 1)
		if _, err := unix.Write(w.wake, one); err != nil {
			return fmt.Errorf("faultwire: waking the forwarder: %w", err)
		}
		<-w.done
		errs = append(errs, w.err, unix.Close(w.wake))
	}
	for i := range w.ports {
		errs = append(errs, w.ports[i].close())
	}
	for _, p := range w.pairs {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
