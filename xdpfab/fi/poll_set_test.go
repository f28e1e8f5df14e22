// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// news polls a set until exactly these contexts have been seen.
func news(t *testing.T, p *fi.PollSet, want ...any) {
	t.Helper()
	var seen []any
	testnet.Eventually(t, "the news come", func() bool {
		list := make([]any, 4)
		n, err := p.Poll(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list[:n] {
			if !slices.Contains(seen, c) {
				seen = append(seen, c)
			}
		}
		return len(seen) >= len(want)
	})
	for _, c := range want {
		if !slices.Contains(seen, c) {
			t.Errorf("news of %v, want %v", seen, want)
		}
	}
}

// nothing polls a set that has no news.
func nothing(t *testing.T, p *fi.PollSet) {
	t.Helper()
	list := make([]any, 4)
	if n, err := p.Poll(list); n != 0 || err != nil {
		t.Errorf("news of %v, %v, want nothing", list[:n], err)
	}
}

// A set returns the contexts of the queue and the counter that have news: of the queue
// until it has been read, of the counter once for each change.
func TestPollSet(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		w := setUpWaits(t, a, fi.WaitUnspec)
		p, err := w.client.NewPollSet()
		if err := errors.Join(err, p.Add(w.cq, "queue"), p.Add(w.cntr, "counter"), p.Add(w.fixture.cq, "quiet")); err != nil {
			t.Fatal(err)
		}
		nothing(t, p)
		w.post(t, 1)
		if err := p.Wait(ctx(t)); err != nil {
			t.Fatal(err)
		}
		news(t, p, "queue", "counter")
		news(t, p, "queue")
		w.drain(t, 1)
		nothing(t, p)
		w.post(t, 99)
		news(t, p, "queue", "counter")
		w.drain(t, 1)
		nothing(t, p)
		w.cntr.Add(1)
		news(t, p, "counter")
		nothing(t, p)

		soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := p.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait with nothing to come: %v, want the context's error", err)
		}
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- p.Wait(ctx(t)) }()
		}
		w.post(t, 1)
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("a wait that something ends: %v", err)
			}
		}
		if err := errors.Join(p.Del(w.cq), p.Del(w.fixture.cq)); err != nil {
			t.Fatal(err)
		}
		news(t, p, "counter")
		nothing(t, p)
	})
}

// With room for one context, each member with news has its turn.
func TestPollSetIsFair(t *testing.T) {
	w := setUpWaits(t, fi.DomainAttr{}, fi.WaitUnspec)
	p, err := w.client.NewPollSet()
	counters := make([]*fi.Counter, 3)
	for i := range counters {
		c, e := w.client.NewCounter()
		counters[i], err = c, errors.Join(err, e, p.Add(c, i))
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]int{}
	for range 3 * len(counters) {
		for _, c := range counters {
			c.Add(1)
		}
		one := make([]any, 1)
		if n, err := p.Poll(one); n != 1 || err != nil {
			t.Fatalf("%d contexts, %v", n, err)
		}
		seen[one[0]]++
	}
	for i := range counters {
		if seen[i] != 3 {
			t.Errorf("the turns are %v, want 3 for each", seen)
		}
	}
}

// What cannot be in a set is refused; what is in one cannot be closed, nor can the set.
func TestPollSetRefusals(t *testing.T) {
	w := setUpWaits(t, fi.DomainAttr{}, fi.WaitUnspec)
	p, err := w.client.NewPollSet()
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := w.server.NewCounter()
	c, _ := w.client.NewCounter()
	refused := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	refused("an empty set", p.Wait(ctx(t)), fi.ErrNotEnabled)
	refused("nothing", p.Add(nil, 0), fi.ErrNotImplemented)
	refused("another domain's", p.Add(foreign, 0), fi.ErrForeign)
	refused("not in it", p.Del(c), syscall.EINVAL)
	refused("added", p.Add(c, 0), nil)
	refused("added twice", p.Add(c, 0), fi.ErrBusy)
	refused("a counter in a set", c.Close(), fi.ErrBusy)
	refused("a set with a counter", p.Close(), fi.ErrBusy)
	refused("taken out", errors.Join(p.Del(c), c.Close(), p.Close(), p.Close()), nil)
	refused("closed", p.Add(w.cntr, 0), fi.ErrClosed)
	_, err = p.Poll(nil)
	refused("poll of a closed set", err, fi.ErrClosed)

	p, err = w.client.NewPollSet()
	if err := errors.Join(err, p.Add(w.cq, 0)); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	go func() { errs <- p.Wait(ctx(t)) }()
	refused("the end", w.client.CloseAll(), nil)
	refused("a wait at the end", <-errs, fi.ErrClosed)
	_, err = w.client.NewPollSet()
	refused("a set of a closed domain", err, fi.ErrClosed)
}
