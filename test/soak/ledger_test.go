// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// crew is the group of actors of a world.
type crew struct {
	w      *world
	actors []*actor
	stop   chan struct{}
	wg     sync.WaitGroup
}

// plan describes how a crew works.
type plan struct {
	actors, depth, limit int
	pace                 time.Duration
	seed                 uint64
	size                 int // of submission ring and completion queue; 0 means 256
	mixed                bool
}

// hire makes a crew; start sets it to work.
func (w *world) hire(p plan) *crew {
	w.t.Helper()
	if p.size == 0 {
		p.size = 256
	}
	c := &crew{w: w, stop: make(chan struct{})}
	for i := range min(p.actors, maxActors) {
		a := &actor{w: w, slot: slotSize * (1 + i), depth: p.depth, limit: p.limit, pace: p.pace, mixed: p.mixed}
		a.rnd = rand.New(rand.NewPCG(p.seed, uint64(i)))
		av, err := w.client.NewAddressVector()
		must(w.t, err)
		a.dest = w.insert(av)
		a.cq, err = w.client.NewCompletionQueue(fi.CQAttr{Size: p.size})
		must(w.t, err)
		a.ep, err = w.client.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber, Size: p.size, InitiateOnly: true})
		must(w.t, err)
		must(w.t, errors.Join(a.ep.Bind(av, 0), a.ep.Bind(a.cq, 0), a.ep.Enable()))
		c.actors = append(c.actors, a)
	}
	return c
}

// insert gives the server's address to an address vector. It tries repeatedly:
// after a partition the kernel's ARP may take longer than the give-up time.
func (w *world) insert(av *fi.AddressVector) fi.Address {
	w.t.Helper()
	ctx := limited(w.t)
	for {
		dest, err := av.Insert(ctx, w.addr)
		if errors.Is(err, xdpfab.ErrPeerSilent) && ctx.Err() == nil {
			continue
		}
		must(w.t, err)
		return dest
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start sets the crew to work. A test that fails before finish leaves no
// goroutine behind either.
func (c *crew) start() *crew {
	for _, a := range c.actors {
		c.wg.Go(func() { a.run(c.stop) })
	}
	c.w.t.Cleanup(c.halt)
	return c
}

// halt makes the crew stop posting.
func (c *crew) halt() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.wg.Wait()
}

// finish waits until every actor has reached its limit (or stops them now), takes
// all completions, resolves what is unknown, and compares the books with the
// memory. The wire should be good, or good enough, by then: one more operation of
// each actor has to succeed.
func (c *crew) finish(now bool) {
	c.w.t.Helper()
	if now {
		c.halt()
	}
	c.wg.Wait()
	var wg sync.WaitGroup
	for _, a := range c.actors {
		wg.Go(func() {
			a.drain()
			a.resolve(limited(c.w.t))
			a.again()
		})
	}
	wg.Wait()
	c.check()
}

// bounds are how often an operation certainly ran, and how often it may have
// run.
type bounds struct{ sure, maybe uint64 }

func (b *bounds) add(f fate) {
	switch f {
	case ok, ran:
		b.sure++
		b.maybe++
	case unknown, restarted:
		b.maybe++
	}
}

func (b bounds) hold(v uint64) bool { return v >= b.sure && v <= b.maybe }

// check compares the books with the memory. Everything has completed.
func (c *crew) check() {
	c.w.t.Helper()
	var shared [sharedWords]bounds
	for i, a := range c.actors {
		for at, b := range a.history(i) {
			if f := &fields[at]; place(at) != sharedWord {
				for k, v := range c.w.numbers(f, a.slot) {
					c.compare(f, i, k, v, b)
				}
			}
		}
		for _, p := range a.posts {
			if p.kind == addShared {
				shared[p.word].add(p.fate)
			}
		}
		a.enter()
	}
	for k, v := range c.w.numbers(&fields[sharedWord], 0) {
		c.compare(&fields[sharedWord], 0, k, v, shared[k])
	}
	if c.w.daemon != nil { // it ends before the world's own cleanups
		c.w.countResident()
	}
}

// compare reports an element of the memory that the books do not explain.
func (c *crew) compare(f *field, i, k int, v uint64, b bounds) {
	c.w.t.Helper()
	if !b.hold(v) {
		c.w.t.Errorf("%s %d[%d] is %d, but %d additions were acknowledged and %d can have run", f.name, i, k, v, b.sure, b.maybe)
	}
}

// history checks what an actor's operations returned, in the order posted, and
// returns the bounds of its places.
//
// Operations of one endpoint on one peer apply in order, so each fetched value is
// at least the number of additions before it that were acknowledged, at most the
// number of those that can have run, and more than the last value fetched. One
// that was unknown may be late, which is why it never raises the lower bound here.
func (a *actor) history(i int) (sums [numPlaces]bounds) {
	t := a.w.t
	t.Helper()
	var at [numPlaces]struct {
		past bounds
		next [arrayLen]uint64 // least that can be fetched from here on
	}
	for n, p := range a.posts {
		if p.seen != 1 {
			t.Errorf("actor %d: operation %d of %d has %d completions", i, n, len(a.posts), p.seen)
		}
		to := forms[p.kind].place
		if to == sharedWord {
			continue
		}
		s := &at[to]
		if p.fate == ok || p.fate == ran && p.result != nil {
			for k, v := range p.values() {
				least := max(s.next[k], s.past.sure)
				if p.fate == ran {
					least = 0
				}
				if v < least || v > s.past.maybe {
					t.Errorf("actor %d: operation %d (kind %d, fate %d) fetched %d from element %d, want %d to %d", i, n, p.kind, p.fate, v, k, least, s.past.maybe)
					break
				}
				if s.next[k] = max(s.next[k], v); p.kind != readOwn {
					s.next[k] = max(s.next[k], v+1)
				}
			}
		}
		if p.kind == readOwn {
			continue
		}
		if s.past.add(p.fate); p.fate == ran {
			s.past.sure--
		}
		sums[to].add(p.fate)
	}
	return sums
}

// enter adds the actor's completions to the tally.
func (a *actor) enter() {
	var n [numFates]int
	for _, p := range a.posts {
		n[p.fate]++
		if p.err != nil {
			survived.add("because "+cause(p.err), 1)
		}
	}
	survived.add("operations", len(a.posts))
	survived.add("completed ok", n[ok])
	survived.add("completed not executed", n[notExecuted])
	survived.add("completed unknown", n[unknown]+n[ran]+n[neverRan])
	survived.add("completed restarted", n[restarted])
}

// cause is the reason of a failed operation, without its particulars.
func cause(err error) string {
	var oe *xdpfab.OpError
	if !errors.As(err, &oe) {
		return err.Error()
	}
	return fmt.Sprintf("%v: %v", oe.Certainty, oe.Cause)
}
