// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The descriptor of a queue is readable when it was armed and the completions came, and
// not before; and nothing is lost between TryWait and the sleep.
func TestQueueFD(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitFD)
		fd, err := w.cq.FD()
		if err != nil {
			t.Fatal(err)
		}
		progress(t, a, w.client)
		w.post(t, 1)
		testnet.Eventually(t, "the completion comes", func() bool { return w.cq.TryWait(1) == fi.ErrAgain })
		if readable(t, fd, 0) {
			t.Error("readable although not armed")
		}
		if err := w.cq.TryWait(3); err != nil {
			t.Fatal(err)
		}
		w.post(t, 99)
		if readable(t, fd, 20*time.Millisecond) {
			t.Error("readable with two completions, armed for three")
		}
		w.post(t, 1)
		if !readable(t, fd, testnet.Patience) {
			t.Error("not readable with three completions")
		}
		w.drain(t, 3)
		if !readable(t, fd, 0) {
			t.Error("not readable until it is armed again")
		}
		for range reduced(300, 100) {
			if err := w.cq.TryWait(1); err != nil {
				t.Fatal(err)
			}
			w.post(t, 1)
			if !readable(t, fd, testnet.Patience) {
				t.Fatal("a completion is lost on the way to the descriptor")
			}
			w.drain(t, 1)
		}
	})
}

// Signal, Close and the end of the domain make an armed descriptor readable.
func TestQueueFDEnds(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitFD)
		fd, _ := w.cq.FD()
		armed := func() {
			t.Helper()
			if err := w.cq.TryWait(1); err != nil || readable(t, fd, 0) {
				t.Fatalf("armed: %v, or readable", err)
			}
		}
		armed()
		if err := w.cq.Signal(); err != nil || !readable(t, fd, 0) {
			t.Errorf("after Signal: %v, or not readable", err)
		}
		armed()
		if err := w.client.CloseAll(); err != nil || !readable(t, fd, 0) {
			t.Errorf("after the end: %v, or not readable", err)
		}
		if err := w.cq.TryWait(1); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("armed after the end: %v, want ErrClosed", err)
		}
		if err := w.cq.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("the descriptor after Close: %v, want EBADF", err)
		}
		if _, err := w.cq.FD(); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("the descriptor after Close: %v, want ErrClosed", err)
		}
	})
}

// The descriptor of a counter is readable when the threshold is reached, and when there
// is a failure.
func TestCounterFD(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitFD)
		fd, err := w.cntr.FD()
		if err != nil {
			t.Fatal(err)
		}
		progress(t, a, w.client)
		check := func(threshold, errs uint64, cause func()) {
			t.Helper()
			if err := w.cntr.TryWait(threshold, errs); err != nil || readable(t, fd, 0) {
				t.Fatalf("armed: %v, or readable", err)
			}
			cause()
			if !readable(t, fd, testnet.Patience) {
				t.Error("not readable")
			}
			if err := w.cntr.TryWait(threshold, errs); err != fi.ErrAgain {
				t.Errorf("armed although it is over: %v, want ErrAgain", err)
			}
		}
		check(2, 0, func() { w.post(t, 1); w.post(t, 1) })
		check(3, 0, func() { w.post(t, 99) })
		check(10, 1, func() { w.cntr.Add(8) })
		check(11, 1, func() { w.cntr.AddErr(1) })
	})
}

// Epoll on the descriptor of a queue, over a real interface: the poller wakes the
// program, for every operation.
func TestVethEpoll(t *testing.T) {
	a, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	av, _ := a.NewAddressVector()
	cq, err := a.NewCompletionQueue(fi.CQAttr{Wait: fi.WaitFD})
	if err != nil {
		t.Fatal(err)
	}
	ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	dest, err := av.Insert(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ep.Lookup(ctx(t), dest, "r")
	if err != nil {
		t.Fatal(err)
	}
	fd, _ := cq.FD()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(epoll)
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		t.Fatal(err)
	}
	const ops = 1000
	var list [16]fi.Completion
	for done := 0; done < ops; {
		m := &fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := ep.Atomic(m, 0); err != nil {
			t.Fatal(err)
		}
		for n := 0; n == 0; done += n {
			switch err := cq.TryWait(1); {
			case err == nil:
				if got, err := unix.EpollWait(epoll, make([]unix.EpollEvent, 1), int(testnet.Patience.Milliseconds())); got != 1 && !errors.Is(err, unix.EINTR) {
					t.Fatalf("after %d operations: %d events, %v", done, got, err)
				}
			case err != fi.ErrAgain:
				t.Fatal(err)
			}
			if n, err = cq.Read(list[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
}
