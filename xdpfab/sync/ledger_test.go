// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// claim is a time in which a program was sure to hold something: from after the call that
// got it to the beginning of the release, the end of the context that releases it, or the
// end of the lease as the holder knew it. So no delay of the test's own makes two claims
// meet.
type claim struct {
	from, to  time.Time
	token     uint64
	exclusive bool
}

// ledger is all claims.
type ledger struct {
	mu     sync.Mutex
	claims []claim
}

// note records that something is held from now on, until the returned function is called.
func (l *ledger) note(h *Held, exclusive bool) (end func()) {
	from := time.Now()
	deadline, _ := h.Context().Deadline()
	return func() {
		to := h.Until()
		for _, end := range []time.Time{time.Now(), deadline} {
			if end.Before(to) {
				to = end
			}
		}
		if to.After(from) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.claims = append(l.claims, claim{from, to, h.Token(), exclusive})
		}
	}
}

// check returns what is wrong: more than most held at the same time, or one that is
// exclusive and another. Tokens of claims that do not meet grow, if one is exclusive: of
// two that share, the first to hold may have no time to say so before the other has
// ended.
func (l *ledger) check(most int) (wrong []string) {
	slices.SortFunc(l.claims, func(a, b claim) int { return a.from.Compare(b.from) })
	for i, b := range l.claims {
		meets := 1
		for _, a := range l.claims[:i] {
			if !a.to.After(b.from) {
				if a.token >= b.token && (a.exclusive || b.exclusive) {
					wrong = append(wrong, fmt.Sprintf("token %d after %d", b.token, a.token))
				}
				continue
			}
			if meets++; meets > most || a.exclusive || b.exclusive {
				wrong = append(wrong, fmt.Sprintf("%d holders: %d holds for another %v when %d gets it", meets, a.token,
					a.to.Sub(b.from), b.token))
			}
		}
	}
	return wrong
}

const testLease = 80 * time.Millisecond

var everything = faults{crashes: true, keeps: true, forgets: true, between: 40 * time.Millisecond, howOften: 20}

// leased is the same for what has leases: contexts and cuts last for more than one, so
// that leases end while their holders live.
var leased = faults{crashes: true, keeps: true, forgets: true, between: 40 * time.Millisecond, howOften: 30,
	calls: 6 * testLease, cut: 3 * testLease}

// contend has four clients hold what get returns, under every fault, and checks that at
// most so many do at a time.
func contend(t *testing.T, most int, get func(context.Context, Place, *rand.Rand) (*Held, bool, error)) {
	eachSeed(t, 4, func(w *world) {
		for _, wrong := range w.contend(4, leased, get).check(most) {
			w.t.Error(wrong)
		}
	})
}

// contend has clients hold what get returns at the same time, while the network is
// disturbed, and then each once more. It returns what they held.
func (w *world) contend(clients int, f faults, get func(ctx context.Context, at Place, rng *rand.Rand) (
	h *Held, exclusive bool, err error)) *ledger {
	w.t.Helper()
	var l ledger
	w.busy(clients, f, func(ctx context.Context, _ int, at Place, rng *rand.Rand) error {
		return w.turn(ctx, &l, at, rng, get)
	})
	w.t.Log(len(l.claims), "times held")
	return &l
}

// turn holds something, some times.
func (w *world) turn(ctx context.Context, l *ledger, at Place, rng *rand.Rand,
	get func(context.Context, Place, *rand.Rand) (*Held, bool, error)) error {
	for range 1 + rng.IntN(5) {
		h, exclusive, err := get(ctx, at, rng)
		if err != nil {
			return err
		}
		if h == nil { // tried in vain
			continue
		}
		end := l.note(h, exclusive)
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
		if rng.IntN(16) == 0 { // does not come back while it holds, which it renews while ctx lasts
			select {
			case <-h.Context().Done():
			case <-time.After(3 * testLease):
			}
		}
		end()
		if rng.IntN(2) == 0 {
			_ = h.StartUnlock()
		}
		if rng.IntN(2) == 0 {
			_ = h.Unlock()
		} else { // a release that fails costs the others a lease
			_ = h.StartUnlock()
		}
	}
	return nil
}

// The check can fail.
func TestLedger(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, int64(ms)*1e6) }
	for _, c := range []struct {
		claims []claim
		most   int
		bad    bool
	}{
		{[]claim{{at(0), at(2), 1, true}, {at(2), at(3), 2, true}}, 1, false},
		{[]claim{{at(0), at(2), 1, true}, {at(1), at(3), 2, true}}, 1, true},
		{[]claim{{at(0), at(2), 2, true}, {at(2), at(3), 1, true}}, 1, true},
		{[]claim{{at(0), at(2), 1, false}, {at(1), at(3), 2, false}}, 2, false},
		{[]claim{{at(0), at(2), 2, false}, {at(2), at(3), 1, false}}, 2, false},
		{[]claim{{at(0), at(2), 2, false}, {at(2), at(3), 1, true}}, 2, true},
		{[]claim{{at(0), at(2), 1, false}, {at(1), at(3), 2, true}}, 2, true},
	} {
		l := ledger{claims: c.claims}
		if wrong := l.check(c.most); (len(wrong) > 0) != c.bad {
			t.Errorf("%v: %q, want some %t", c.claims, wrong, c.bad)
		}
	}
}
