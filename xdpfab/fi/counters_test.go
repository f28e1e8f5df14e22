// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Counters count what has completed, at both sides, at once: not only what had completed
// when the engine last looked at its timers.
func TestCountersAreFresh(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		c := t.Context() // without a limit: all of them take long on a busy machine
		const each = 1000
		rounds := uint64(reduced(6, 2))
		for done := uint64(each); done <= rounds*each; done += each {
			for range each {
				if _, err := w.Add(c, 1); err != nil {
					t.Fatal(err)
				}
			}
			if n := counter(t, f.client, "ops_sent"); n != done {
				t.Fatalf("the client has sent %d operations, but %d have completed", n, done)
			}
			if n := counter(t, f.server, "ops_executed"); n != done {
				t.Fatalf("the server has executed %d operations, but %d have completed", n, done)
			}
		}
	})
}

// The counters of a domain that is closed can still be asked for.
func TestCountersAfterClose(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0).Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		if err := f.client.CloseAll(); err != nil {
			t.Fatal(err)
		}
		for range 100 { // more than an engine takes calls for
			if n := counter(t, f.client, "ops_sent"); n != 1 {
				t.Fatalf("the client has sent %d operations, want 1", n)
			}
		}
	})
}

// counter is one of a domain's counters.
func counter(t testing.TB, d *xdpfab.Domain, name string) uint64 {
	t.Helper()
	all, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	n, is := all[name]
	if !is {
		t.Fatalf("there is no counter %q", name)
	}
	return n
}

// A failure from before the wait ends it, if it is told from when on failures count.
func TestWaitFrom(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		counter, err := f.client.NewCounter()
		if err != nil {
			t.Fatal(err)
		}
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(counter, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		post := func(key uint64) {
			t.Helper()
			if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Fatal(err)
			}
		}
		before := counter.ReadErr()
		post(99)
		testnet.Eventually(t, "the failure is counted", func() bool { return counter.ReadErr() == before+1 })
		post(1)
		if err := counter.WaitFrom(ctx(t), 2, before); !errors.Is(err, fi.ErrErrorPending) {
			t.Errorf("with a failure from before: %v, want ErrErrorPending", err)
		}
		if err := counter.WaitFrom(ctx(t), 1, before+1); err != nil {
			t.Errorf("without a failure since: %v", err)
		}
		soon, cancel := context.WithTimeout(ctx(t), 10*time.Millisecond)
		defer cancel()
		if err := counter.WaitFrom(soon, 2, before+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with nothing to come: %v, want the context's error", err)
		}
	})
}

// A counter that no endpoint is bound to counts what the program adds, and its waiters
// wait for that.
func TestCounterOfTheProgram(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		counter, err := f.client.NewCounter()
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(ctx(t), time.Millisecond)
		defer cancel()
		if err := counter.Wait(soon, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with nothing to come: %v, want the context's error", err)
		}
		done := make(chan error)
		go func() { done <- counter.Wait(ctx(t), 3) }()
		counter.Add(1)
		counter.Set(3)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A counter of bytes counts those of what succeeds, and each failure once.
func TestCounterOfBytes(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		sum, err := f.client.NewCounter(fi.CounterAttr{Events: fi.CountBytes})
		if err != nil || sum.Attr().Events != fi.CountBytes {
			t.Fatalf("%+v, %v", sum, err)
		}
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(err, ep.Bind(f.av, 0)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ep.Bind(sum, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		post := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		word := fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		for range 20 { // a run: nearly all follow the first one
			post(ep.Atomic(&word, fi.FlagMore))
		}
		array := word
		array.Buf, array.Result = make([]byte, 200), make([]byte, 200)
		post(ep.FetchAtomic(&array, 0))
		post(ep.Write(&fi.RMA{Buf: make([]byte, 33), Dest: f.dest, Key: 1}, 0))
		lost := word
		lost.Key = 99
		post(ep.Atomic(&lost, 0))
		const want = 20*8 + 200 + 33
		testnet.Eventually(t, "all is counted", func() bool { return sum.Read() == want && sum.ReadErr() == 1 })
	})
}
