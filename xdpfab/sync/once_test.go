// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// All programs get the same result, however often the function had to run.
func TestOnce(t *testing.T) {
	eachSeed(t, 4, func(w *world) {
		var all sync.WaitGroup
		var mu sync.Mutex
		results := map[uint64]int{}
		var runs atomic.Uint64
		for i := range 4 {
			all.Go(func() {
				ctx := patient(w.t)
				for {
					v, err := w.once(ctx, 1+i, func(context.Context, uint64) (uint64, error) {
						time.Sleep(rand.N(4 * time.Millisecond))
						if n := runs.Add(1); rand.IntN(2) == 0 {
							return n, nil
						}
						return 0, errors.New("try again")
					})
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						results[v]++
						return
					}
					if ctx.Err() != nil {
						w.t.Error(err)
						return
					}
				}
			})
		}
		w.disturb(faults{crashes: true, keeps: true, clients: 4, between: 20 * time.Millisecond, howOften: 10})
		all.Wait()
		if len(results) != 1 {
			w.t.Errorf("results and how many got them: %v, want one", results)
		}
	})
}

func (w *world) once(ctx context.Context, node int, f func(context.Context, uint64) (uint64, error)) (uint64, error) {
	at, err := w.place(ctx, node)
	if err != nil {
		return 0, err
	}
	o, err := NewOnce(ctx, at, testLease)
	if err != nil {
		return 0, err
	}
	return o.Do(ctx, f)
}

// The function is called once, and again in new memory.
func TestOnceCalls(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	o := must(NewOnce(ctx, w.at(1, 0), testLease))(t)
	calls := uint64(0)
	f := func(context.Context, uint64) (uint64, error) { calls++; return calls, nil }
	for want := uint64(1); want <= 2; want++ {
		for range 3 {
			if v, err := o.Do(ctx, f); v != want || err != nil || calls != want {
				t.Errorf("%d, %v after %d calls, want %d", v, err, calls, want)
			}
		}
		w.restart(true)
		if v, err := o.Do(ctx, f); v != want || err != nil {
			t.Errorf("with the same memory: %d, %v", v, err)
		}
		w.restart(false)
	}
}

// A function that has run is not said not to have, if its result could not be stored.
func TestOnceOutcomeUnknown(t *testing.T) {
	w := newWorld(t, 1, 1)
	o := must(NewOnce(patient(t), w.at(1, 0), testLease))(t)
	ctx, cancel := context.WithCancel(patient(t))
	_, err := o.Do(ctx, func(context.Context, uint64) (uint64, error) { cancel(); return 1, nil })
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("%v, want an unknown outcome: the function has run", err)
	}
	_, err = o.Do(ctx, func(context.Context, uint64) (uint64, error) { return 1, nil })
	if !errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("%v, want not executed: the context had ended before", err)
	}
}

// There is one leader at a time, and all who ask hear of that one or a later one, or, in
// new memory, of none.
func TestElection(t *testing.T) {
	contend(t, 1, func(ctx context.Context, at Place, rng *rand.Rand) (*Held, bool, error) {
		e, err := NewElection(ctx, at, testLease)
		if err != nil {
			return nil, false, err
		}
		value := rng.Uint64()
		h, err := e.Campaign(ctx, value)
		if err != nil {
			return nil, false, err
		}
		v, token, _, err := e.Leader(ctx)
		if err == nil && token > 0 && (token < h.Token() || token == h.Token() && v != value) {
			t.Errorf("leader %d with token %d, after %d with %d was told", v, token, value, h.Token())
		}
		return h, true, nil
	})
}

// Leader tells who leads, and who led.
func TestLeader(t *testing.T) {
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	a := must(NewElection(ctx, w.at(1, 0), time.Second))(t)
	b := must(NewElection(ctx, w.at(2, 0), time.Second))(t)
	leader := func(want, token uint64, leads bool) {
		t.Helper()
		if v, tok, ok, err := b.Leader(ctx); v != want || tok != token || ok != leads || err != nil {
			t.Errorf("leader %d, token %d, leads %t, %v; want %d, %d, %t", v, tok, ok, err, want, token, leads)
		}
	}
	leader(0, 0, false)
	ha := must(a.Campaign(ctx, 7))(t)
	leader(7, ha.Token(), true)
	if err := ha.Unlock(); err != nil {
		t.Error(err)
	}
	leader(7, ha.Token(), false)
	hb := must(b.Campaign(ctx, 8))(t)
	leader(8, hb.Token(), true)
	if err := a.tell(ctx, ha, 7); err != nil { // late
		t.Error(err)
	}
	leader(8, hb.Token(), true)
	if err := w.net.Partition(2); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the leader that is cut off hears of it", func() bool { return hb.Context().Err() != nil })
	if err := hb.Unlock(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// A Once without a function takes nothing.
func TestOnceWithoutFunction(t *testing.T) {
	w := newWorld(t, 1, 1)
	o := must(NewOnce(patient(t), w.at(1, 0), testLease))(t)
	if _, err := o.Do(patient(t), nil); !errors.Is(err, ErrParameter) {
		t.Error(err)
	}
}
