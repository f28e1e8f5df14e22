// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// fate is the known outcome of an operation.
type fate uint8

const (
	pending fate = iota
	ok
	notExecuted // as the completion said
	unknown
	restarted
	ran      // was unknown, and turned out to have run
	neverRan // was unknown, and turned out not to have
	numFates
)

// post is an operation and its end.
type post struct {
	kind   kind
	word   int // of the shared ones
	fate   fate
	seen   int // completions
	err    error
	result []byte
}

// actor is an endpoint that posts at random and keeps books. One goroutine uses
// it.
type actor struct {
	w     *world
	slot  int // byte offset in the region
	ep    *fi.Endpoint
	cq    *fi.CompletionQueue
	dest  fi.Address
	rnd   *rand.Rand
	depth int // outstanding at most
	limit int // posts at most
	pace  time.Duration
	mixed bool // posts kinds that a resident session passes to user space, too
	posts []*post
	open  int // posted, not completed
	buf   [64]fi.Completion
}

// run posts until stop is closed or the limit is reached.
func (a *actor) run(stop <-chan struct{}) {
	for len(a.posts) < a.limit {
		select {
		case <-stop:
			return
		default:
		}
		if a.open >= a.depth || !a.post() {
			if a.collect() == 0 {
				a.wait(20 * time.Millisecond)
			}
			continue
		}
		if a.pace > 0 {
			a.collect()
			time.Sleep(a.pace)
		}
	}
}

// post posts one operation; false when the queues are full.
func (a *actor) post() bool {
	p := &post{kind: a.draw(a.rnd), word: a.rnd.IntN(sharedWords)}
	send := a.ep.Atomic
	if forms[p.kind].fetch {
		send = a.ep.FetchAtomic
	}
	err := send(a.message(p), 0)
	if errors.Is(err, fi.ErrAgain) {
		return false
	}
	if err != nil {
		a.w.t.Errorf("posting: %v", err)
		return false
	}
	a.posts = append(a.posts, p)
	a.open++
	return true
}

// collect takes completions, and returns how many there were.
func (a *actor) collect() (n int) {
	for {
		k, err := a.cq.Read(a.buf[:])
		for _, c := range a.buf[:k] {
			a.completed(c)
		}
		n += k
		if errors.Is(err, fi.ErrErrorPending) {
			if c, ok := a.cq.ReadErr(); ok {
				a.completed(c)
				n++
			}
			continue
		}
		if k == 0 {
			return n
		}
	}
}

// completed enters one completion into the books.
func (a *actor) completed(c fi.Completion) {
	p, is := c.Context.(*post)
	if !is {
		a.w.t.Errorf("completion with a context never given: %v", c)
		return
	}
	if p.seen++; p.seen > 1 {
		a.w.t.Errorf("an operation completed %d times, first %v, then %v", p.seen, p.err, c.Err)
		return
	}
	a.open--
	p.err = c.Err
	switch {
	case c.Err == nil:
		p.fate = ok
	case errors.Is(c.Err, xdpfab.ErrNotExecuted):
		p.fate = notExecuted
	case errors.Is(c.Err, xdpfab.ErrPeerRestarted):
		p.fate = restarted
	case errors.Is(c.Err, xdpfab.ErrOutcomeUnknown):
		p.fate = unknown
	default:
		a.w.t.Errorf("a completion says nothing of what is known: %v", c.Err)
	}
	a.w.mayFail(p.fate, c.Err)
}

// wait sleeps until there is a completion or the time is over.
func (a *actor) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := a.cq.Wait(ctx, 1); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		a.w.t.Errorf("waiting for a completion: %v", err)
	}
}

// drain takes completions until nothing is outstanding.
func (a *actor) drain() {
	for end := time.Now().Add(patience); a.open > 0; {
		if a.collect() > 0 {
			end = time.Now().Add(patience)
			continue
		}
		if time.Now().After(end) {
			a.w.t.Errorf("%d of %d operations do not complete", a.open, len(a.posts))
			return
		}
		a.wait(time.Second)
	}
}

// again posts until an operation succeeds. On a good wire that is the first one
// or, if the server has restarted since the last operation, one of the next.
func (a *actor) again() {
	const attempts = 3
	for range attempts {
		for end := time.Now().Add(patience); !a.post() && time.Now().Before(end); {
			a.wait(time.Millisecond)
		}
		a.drain()
		if a.posts[len(a.posts)-1].fate == ok {
			return
		}
	}
	a.w.t.Errorf("all faults have ended, but operations fail: %v", a.posts[len(a.posts)-1].err)
}

// resolve asks for the outcomes of unknown operations.
func (a *actor) resolve(ctx context.Context) {
	for _, p := range a.posts {
		var oe *xdpfab.OpError
		if p.fate != unknown || !errors.As(p.err, &oe) {
			continue
		}
		did, result, err := oe.Resolve(ctx)
		switch {
		case ctx.Err() != nil:
			a.w.t.Errorf("the outcome of an operation does not become known: %v", err)
			return
		case err != nil && p.long():
			survived.add("unresolved arrays", 1) // some of its frames ran and some did not
		case err != nil:
			survived.add("unresolved", 1)
		case did:
			p.fate = ran
			if len(result) != len(p.result) {
				a.w.t.Errorf("resolved with a result of %d bytes, want %d", len(result), len(p.result))
				continue
			}
			p.result = result
			survived.add("resolved: ran", 1)
		default:
			p.fate = neverRan
			survived.add("resolved: never ran", 1)
		}
	}
}

// long reports whether the operation takes several frames, so that a part of it can
// run.
func (p *post) long() bool { return forms[p.kind].place == ownArray }
