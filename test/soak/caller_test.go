// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// caller adds to a word by calls that wait, many of which it leaves early because
// their contexts end first. It is one goroutine, so its operations are in order.
type caller struct {
	w     *world
	word  xdpfab.Remote[uint64]
	at    int // byte offset of the word in the region
	rnd   *rand.Rand
	haste time.Duration // the longest life of a context that ends early
	calls []*spoken
}

// spoken is a call and its known outcome.
type spoken struct {
	fate fate
	err  error
	old  uint64 // of the word, if it ran
}

// callers is a group of them.
type callers struct {
	w    *world
	all  []*caller
	stop atomic.Bool
	wg   sync.WaitGroup
}

// call starts callers, which share one dialled peer.
func (w *world) call(n int, haste time.Duration, seed uint64) *callers {
	w.t.Helper()
	p, err := w.client.Dial(limited(w.t), w.addr)
	must(w.t, err)
	c := &callers{w: w}
	for i := range n {
		a := &caller{w: w, at: slotSize*(1+i) + 8, haste: haste, rnd: rand.New(rand.NewPCG(seed, uint64(i)))}
		a.word = xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: regionKey}, uint64(a.at)/8)
		c.all = append(c.all, a)
		a.add(patience) // so that there is a session when the trouble begins
		c.wg.Go(func() {
			for !c.stop.Load() {
				a.hurry()
			}
		})
	}
	w.t.Cleanup(c.halt)
	return c
}

func (c *callers) halt() {
	c.stop.Store(true)
	c.wg.Wait()
}

// hurry makes one call. Two of three have a deadline that may pass first.
func (a *caller) hurry() {
	time.Sleep(time.Duration(a.rnd.Int64N(int64(200 * time.Microsecond))))
	limit := patience
	if a.rnd.IntN(3) > 0 {
		limit = time.Duration(a.rnd.Int64N(int64(a.haste)))
	}
	a.add(limit)
}

// add makes one call, which it leaves after a time.
func (a *caller) add(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	sum, err := a.word.Add(ctx, 1)
	s := &spoken{fate: ok, err: err, old: sum - 1}
	switch {
	case err == nil:
	case errors.Is(err, xdpfab.ErrNotExecuted):
		s.fate = notExecuted
	case errors.Is(err, xdpfab.ErrOutcomeUnknown):
		s.fate = unknown
	default:
		a.w.t.Errorf("a call says nothing of what is known: %v", err)
	}
	a.calls = append(a.calls, s)
	if a.rnd.IntN(4) == 0 { // also in between, with little patience
		s.resolve(a.w, ctx)
	}
}

// resolve asks what became of a call of unknown outcome. The outcome stays unknown if
// ctx ends before the answer.
func (s *spoken) resolve(w *world, ctx context.Context) {
	var oe *xdpfab.OpError
	if s.fate != unknown || !errors.As(s.err, &oe) {
		return
	}
	did, result, err := oe.Resolve(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		w.t.Errorf("a call that was left early is never resolved: %v", err)
	case !did:
		s.fate = neverRan
	case len(result) != 8:
		w.t.Errorf("resolved with a result of %d bytes, want 8", len(result))
	default:
		s.fate, s.old = ran, binary.LittleEndian.Uint64(result)
	}
}

// finish stops the callers, resolves what is unknown, and compares their books with the
// memory: no session was given up, so nothing stays unknown, every call that ran found
// the value that those before it had left, and the word is the number of calls that
// ran.
func (c *callers) finish() {
	t := c.w.t
	t.Helper()
	c.halt()
	for i, a := range c.all {
		var n [numFates]int
		for k, s := range a.calls {
			s.resolve(c.w, limited(t))
			sum := uint64(n[ok] + n[ran])
			if n[s.fate]++; (s.fate == ok || s.fate == ran) && s.old != sum {
				t.Errorf("caller %d: call %d of %d (fate %d) found %d, want %d", i, k, len(a.calls), s.fate, s.old, sum)
				break
			}
		}
		if v, sum := c.w.word(a.at), uint64(n[ok]+n[ran]); v != sum || n[unknown] > 0 {
			t.Errorf("caller %d: the word is %d; %d calls ran, %d are unknown", i, v, sum, n[unknown])
		}
		survived.add("calls", len(a.calls))
		survived.add("calls ok", n[ok])
		survived.add("calls left early: ran", n[ran])
		survived.add("calls left early: never ran", n[neverRan]+n[notExecuted])
	}
}
