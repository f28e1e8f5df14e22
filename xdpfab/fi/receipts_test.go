// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// inTime is a receive that is posted when a counter has a value.
func inTime(c *fi.Counter, value uint64, k *talker, r *fi.Receive, tagged bool) *fi.Work {
	return &fi.Work{When: fi.Threshold{Counter: c, Value: value}, Do: fi.RecvWork{Endpoint: k.ep, Receive: r, Tagged: tagged}}
}

// newCounter makes a counter.
func (h *hall) newCounter(d *xdpfab.Domain) *fi.Counter {
	h.Helper()
	c, err := d.NewCounter()
	h.ok(err)
	return c
}

// A deferred receive is posted when its counter has reached the threshold: what has come
// goes into it, and what comes.
func TestDeferredReceive(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		to := h.knows(a, b)
		h.knows(b, a)
		start, end := h.newCounter(h.b), h.newCounter(h.b)
		for i, tagged := range []bool{false, true} {
			h.told(a, to, "plain")
			h.toldTagged(a, to, 7, "tagged")
			buf := make([]byte, 10)
			w := inTime(start, uint64(i+1), b, &fi.Receive{Buf: buf, Tag: 7, Context: "it"}, tagged)
			w.Completion = end
			h.ok(h.b.QueueWork(w))
			h.nothing(b.got)
			start.Add(1)
			want := map[bool]string{false: "plain", true: "tagged"}[tagged]
			if c := h.success(b.got, "it"); string(buf[:c.Bytes]) != want {
				h.Errorf("received %q, want %q", buf[:c.Bytes], want)
			}
			h.until("the end is counted", func() bool { return end.Read() == uint64(i+1) })
		}
		// It matches as from the time of its post: an older receive goes first.
		h.ok(h.b.QueueWork(inTime(start, 3, b, &fi.Receive{Pieces: [][]byte{make([]byte, 10)}, Tag: 8, Context: "second"}, true)))
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: make([]byte, 10), Tag: 8, Context: "first"}, 0))
		start.Add(1)
		h.nothing(b.got) // the thread that makes progress has posted it by now, or will
		h.toldTagged(a, to, 8, "one")
		h.toldTagged(a, to, 8, "two")
		h.success(b.got, "first")
		h.success(b.got, "second")
		h.ok(errors.Join(start.Close(), end.Close()))
	})
}

// Receives that start each other, by a counter of receives and by their completion
// counters, take all messages in order: nothing waits for a lock that it has.
func TestDeferredReceiveChain(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		count, end := h.newCounter(h.b), h.newCounter(h.b)
		a := h.talker(h.a, fi.EndpointAttr{})
		b := h.talker(h.b, fi.EndpointAttr{}, sends, func(k *talker) error { return k.ep.Bind(count, fi.BindRecv) })
		to := h.knows(a, b)
		h.knows(b, a)
		defer func() { h.ok(errors.Join(b.ep.Close(), count.Close(), end.Close())) }()
		const n = 40
		bufs := make([][]byte, n)
		for i := range n {
			bufs[i] = make([]byte, 1)
			w := inTime(count, uint64(i), b, &fi.Receive{Buf: bufs[i], Context: i}, false)
			if i%2 == 1 { // by the end of the one before
				w.When = fi.Threshold{Counter: end, Value: uint64(i)}
			}
			w.Completion = end
			h.ok(h.b.QueueWork(w)) // the first one starts at once
		}
		for i := range n {
			h.ok(a.ep.Send(&fi.Message{Buf: []byte{byte(i)}, Dest: to, Context: i}, 0))
		}
		for i := range n {
			h.success(a.sent, i)
			if h.success(b.got, i); bufs[i][0] != byte(i) {
				h.Fatalf("receive %d has message %d", i, bufs[i][0])
			}
		}
		h.until("all ends are counted", func() bool { return end.Read() == n && count.Read() == n })
	})
}

// A deferred receive that is cancelled, or whose endpoint is closed, completes once, with
// that cause, and takes no message.
func TestDeferredReceiveCancelled(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{ReceiveSize: 4})
		to := h.knows(a, b)
		h.knows(b, a)
		start, end := h.newCounter(h.b), h.newCounter(h.b)
		queue := func(context any, at uint64) *fi.Work {
			w := inTime(start, at, b, &fi.Receive{Buf: make([]byte, 10), Context: context}, false)
			w.Completion = end
			h.ok(h.b.QueueWork(w))
			return w
		}
		one := queue("one", 1)
		h.ok(h.b.CancelWork(one))
		h.failure(b.got, "one", fi.ErrCancelled)
		if err := h.b.CancelWork(one); !errors.Is(err, fi.ErrNotQueued) {
			h.Error(err)
		}
		queue("two", 1)
		h.b.FlushWork()
		h.failure(b.got, "two", fi.ErrCancelled)
		if end.ReadErr() != 2 || end.Read() != 0 {
			h.Errorf("%d failures and %d successes are counted, want 2 and 0", end.ReadErr(), end.Read())
		}
		queue("three", 1)
		start.Add(1)
		h.told(a, to, "hello")
		h.success(b.got, "three")

		for i := range 4 {
			queue(i, 9)
		}
		full := inTime(start, 9, b, &fi.Receive{}, false)
		if err := h.b.QueueWork(full); !errors.Is(err, fi.ErrAgain) {
			h.Errorf("a fifth receive of 4: %v", err)
		}
		if err := b.ep.Receive(&fi.Receive{}, 0); !errors.Is(err, fi.ErrAgain) {
			h.Errorf("a receive beside 4 deferred ones: %v", err)
		}
		if err := end.Close(); !errors.Is(err, fi.ErrBusy) {
			h.Errorf("a counter that work needs: %v", err)
		}
		start.Add(8) // they are posted, or about to be
		h.ok(b.ep.Close())
		for i := range 4 {
			h.failure(b.got, i, fi.ErrCancelled)
		}
		h.nothing(b.got)
		h.ok(errors.Join(start.Close(), end.Close()))
	})
}

// Receives that cannot be deferred are refused when they are queued.
func TestDeferredReceiveRefused(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	b := h.talker(h.b, fi.EndpointAttr{})
	start := h.newCounter(h.b)
	silent, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	h.ok(errors.Join(err, silent.Enable()))
	at := fi.Threshold{Counter: start, Value: 1}
	for name, c := range map[string]struct {
		do   fi.RecvWork
		want error
	}{
		"no endpoint":         {fi.RecvWork{Receive: &fi.Receive{}}, fi.ErrForeign},
		"receives no message": {fi.RecvWork{Endpoint: silent, Receive: &fi.Receive{}}, fi.ErrNotReceiving},
		"no receive":          {fi.RecvWork{Endpoint: b.ep}, fi.ErrLength},
		"peek":                {fi.RecvWork{Endpoint: b.ep, Receive: &fi.Receive{}, Flags: fi.FlagPeek}, fi.ErrNotImplemented},
		"claim":               {fi.RecvWork{Endpoint: b.ep, Receive: &fi.Receive{}, Flags: fi.FlagClaim}, fi.ErrNotImplemented},
		"fence":               {fi.RecvWork{Endpoint: b.ep, Receive: &fi.Receive{}, Flags: fi.FlagFence}, fi.ErrBadFlags},
		"many, without room":  {fi.RecvWork{Endpoint: b.ep, Receive: &fi.Receive{}, Flags: fi.FlagMultiRecv}, fi.ErrMultiRecv},
	} {
		if err := h.b.QueueWork(&fi.Work{When: at, Do: c.do}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	h.ok(start.Close())
}
