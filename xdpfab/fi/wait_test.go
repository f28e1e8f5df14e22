// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// waits is a client whose second endpoint has a queue and a counter with a wait object.
type waits struct {
	*fixture
	cq   *fi.CompletionQueue
	cntr *fi.Counter
	ep   *fi.Endpoint
}

func setUpWaits(t *testing.T, a fi.DomainAttr, object fi.WaitObject) *waits {
	t.Helper()
	w := &waits{fixture: setUp(t, a, 64)}
	var err1, err2, err3 error
	w.cq, err1 = w.client.NewCompletionQueue(fi.CQAttr{Size: 64, Wait: object})
	w.cntr, err2 = w.client.NewCounter(fi.CounterAttr{Wait: object})
	w.ep, err3 = w.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.ep.Bind(w.av, 0), w.ep.Bind(w.cq, 0), w.ep.Bind(w.cntr, fi.BindWrite), w.ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return w
}

// post adds one to a word of the region with a key. With key 99 it fails.
func (w *waits) post(t *testing.T, key uint64) {
	t.Helper()
	m := &fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Dest: w.dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := w.ep.Atomic(m, 0); err != nil {
		t.Fatal(err)
	}
}

// drain reads n completions, which may be errors.
func (w *waits) drain(t *testing.T, n int) {
	t.Helper()
	var c [1]fi.Completion
	for range n {
		got, err := w.cq.Read(c[:])
		if err == fi.ErrErrorPending {
			_, failed := w.cq.ReadErr()
			if failed {
				continue
			}
		}
		if err != nil || got != 1 {
			t.Fatalf("%d completions, %v", got, err)
		}
	}
}

// progress makes progress until the test ends, as manual progress needs while the test
// sleeps in the kernel.
func progress(t *testing.T, a fi.DomainAttr, d *xdpfab.Domain) {
	if a.Progress != fi.ProgressManual {
		return
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				d.Progress()
				runtime.Gosched()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// readable reports whether a descriptor is readable, after at most a time.
func readable(t *testing.T, fd int, within time.Duration) bool {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(within); ; {
		n, err := unix.Poll(p, int(max(0, time.Until(end)).Milliseconds()))
		if err == nil {
			return n > 0
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// Each wait object, on a queue and a counter: a success and a failure end a wait, and so
// does the context.
func TestWaitObjects(t *testing.T) {
	for _, object := range []fi.WaitObject{fi.WaitUnspec, fi.WaitMutexCond, fi.WaitYield, fi.WaitFD} {
		t.Run(object.String(), func(t *testing.T) {
			progressModes(t, func(t *testing.T, a fi.DomainAttr) {
				w := setUpWaits(t, a, object)
				if got := w.cq.Attr(); got != (fi.CQAttr{Size: 64, Wait: object}) || w.cntr.Attr().Wait != object {
					t.Errorf("the attributes are %+v and %+v", got, w.cntr.Attr())
				}
				w.post(t, 1)
				w.post(t, 99)
				if err := w.cq.Wait(ctx(t), 2); err != nil {
					t.Fatal(err)
				}
				w.drain(t, 2)
				if err := w.cntr.Wait(ctx(t), 1); err != nil {
					t.Error(err)
				}
				if err := w.cntr.WaitFrom(ctx(t), 2, 0); !errors.Is(err, fi.ErrErrorPending) {
					t.Errorf("after a failure: %v, want ErrErrorPending", err)
				}
				soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				defer cancel()
				for _, err := range []error{w.cq.Wait(soon, 1), w.cntr.Wait(soon, 2)} {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("with nothing to come: %v, want the context's error", err)
					}
				}
			})
		})
	}
}

// What a wait object does not offer is refused, and so is one that does not exist.
func TestWaitObjectRefusals(t *testing.T) {
	w := setUpWaits(t, fi.DomainAttr{}, fi.WaitNone)
	_, noFD := w.fixture.cq.FD()
	_, noCounterFD := w.cntr.FD()
	_, unknown := w.client.NewCompletionQueue(fi.CQAttr{Wait: 99})
	_, unknownToo := w.client.NewCounter(fi.CounterAttr{Wait: 99})
	_, bytes := w.client.NewCounter(fi.CounterAttr{Events: 99})
	_, two := w.client.NewCounter(fi.CounterAttr{}, fi.CounterAttr{})
	for what, err := range map[string]error{
		"wait": w.cq.Wait(ctx(t), 1), "signal": w.cq.Signal(), "try to wait": w.cq.TryWait(1),
		"wait for a counter": w.cntr.Wait(ctx(t), 0), "try to wait for a counter": w.cntr.TryWait(1, 0),
		"descriptor": noFD, "counter's descriptor": noCounterFD, "try without descriptor": w.fixture.cq.TryWait(1),
		"unknown object": unknown, "unknown object of a counter": unknownToo, "unknown events": bytes, "two attributes": two,
	} {
		if !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%s: %v, want ErrNotImplemented", what, err)
		}
	}
	w.post(t, 1)
	testnet.Eventually(t, "the completion can be read", func() bool {
		n, err := w.cq.Read(make([]fi.Completion, 1))
		return n == 1 && err == nil
	})
}

// Goroutines that wait for different numbers of completions at the same time all return.
func TestManyWait(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitUnspec)
		var all sync.WaitGroup
		for n := 1; n <= 16; n++ {
			all.Go(func() {
				if err := w.cq.Wait(ctx(t), n); err != nil {
					t.Errorf("for %d: %v", n, err)
				}
				if err := w.cntr.Wait(ctx(t), uint64(n)); err != nil {
					t.Errorf("for the value %d: %v", n, err)
				}
			})
		}
		for range 16 {
			w.post(t, 1)
		}
		all.Wait()
		w.drain(t, 16)
	})
}

// Goroutines that wait and read share the completions out: each is read once.
func TestManyReaders(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitUnspec)
		const readers, each = 4, 500
		var all sync.WaitGroup
		read := make(chan int, readers*each)
		over, cancel := context.WithCancel(ctx(t))
		defer cancel()
		for range readers {
			all.Go(func() {
				list := make([]fi.Completion, 8)
				for w.cq.Wait(over, 1) == nil {
					n, err := w.cq.Read(list)
					if err != nil {
						t.Error(err)
						return
					}
					for range n {
						read <- 1
					}
				}
			})
		}
		for range readers * each {
			m := &fi.Msg{Buf: make([]byte, 8), Dest: w.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
			for errors.Is(w.ep.Atomic(m, 0), fi.ErrAgain) {
				runtime.Gosched()
			}
		}
		for n := range readers * each {
			select {
			case <-read:
			case <-over.Done():
				t.Fatalf("%d of %d completions were read", n, readers*each)
			}
		}
		cancel()
		all.Wait()
	})
}

// Signal ends every wait under way, and else the next one, once.
func TestSignal(t *testing.T) {
	for _, object := range []fi.WaitObject{fi.WaitUnspec, fi.WaitYield} {
		progressModes(t, func(t *testing.T, a fi.DomainAttr) {
			w := setUpWaits(t, a, object)
			w.post(t, 1)
			if err := errors.Join(w.cq.Wait(ctx(t), 1), w.cq.Signal()); err != nil {
				t.Fatal(err)
			}
			if err := w.cq.Wait(ctx(t), 2); err != fi.ErrSignalled {
				t.Errorf("a wait after Signal: %v, want ErrSignalled", err)
			}
			errs := make(chan error, 3)
			for range cap(errs) {
				go func() { errs <- w.cq.Wait(ctx(t), 2) }()
			}
			for n := 0; n < cap(errs); {
				if err := w.cq.Signal(); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-errs:
					if n++; err != fi.ErrSignalled {
						t.Errorf("%v, want ErrSignalled", err)
					}
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}
