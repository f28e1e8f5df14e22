// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// attempt is a method that waits for nobody.
type attempt = func(context.Context) (*Held, bool, error)

// soon tries again and again, for some leases.
func soon(ctx context.Context, try attempt) (*Held, error) {
	for range 64 {
		if h, ok, err := try(ctx); ok || err != nil {
			return h, err
		}
		time.Sleep(testLease / 16)
	}
	return nil, nil
}

// No more programs than there are permits have one if some wait for it and others try.
func TestSemaphoreTries(t *testing.T) {
	contend(t, 2, func(ctx context.Context, at Place, rng *rand.Rand) (*Held, bool, error) {
		s, err := NewSemaphore(ctx, at, 2, testLease)
		if err != nil {
			return nil, false, err
		}
		if rng.IntN(3) == 0 {
			h, err := s.Acquire(ctx)
			return h, false, err
		}
		h, err := soon(ctx, s.TryAcquire)
		return h, false, err
	})
}

// No reader has the lock while a writer has it, nor have two writers, if some try.
func TestRWMutexTries(t *testing.T) {
	contend(t, 3, func(ctx context.Context, at Place, rng *rand.Rand) (*Held, bool, error) {
		m, err := NewRWMutex(ctx, at, 3, testLease)
		if err != nil {
			return nil, false, err
		}
		writes := rng.IntN(3) == 0
		lock, try := m.RLock, m.TryRLock
		if writes {
			lock, try = m.Lock, m.TryLock
		}
		if rng.IntN(2) == 0 {
			h, err := lock(ctx)
			return h, writes, err
		}
		h, err := soon(ctx, try)
		return h, writes, err
	})
}

// gets tries once, and checks whether that got something.
func gets(t *testing.T, what string, want bool, try attempt) *Held {
	t.Helper()
	h, ok, err := try(patient(t))
	if err != nil || ok != want || ok != (h != nil) {
		t.Fatalf("%s: %v, %t, %v; want %t", what, h, ok, err, want)
	}
	return h
}

// let releases what was held.
func let(t *testing.T, held ...*Held) {
	t.Helper()
	for _, h := range held {
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	}
}

// A try gets what is free, and nothing else.
func TestTries(t *testing.T) {
	const lease = time.Second
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	s := must(NewSemaphore(ctx, w.at(1, 0), 2, lease))(t)
	m := must(NewRWMutex(ctx, w.at(1, 1024), 2, lease))(t)
	e := must(NewElection(ctx, w.at(1, 2048), lease))(t)
	let(t, must(s.Acquire(ctx))(t), must(m.Lock(ctx))(t), must(e.Campaign(ctx, 1))(t)) // the memory is not new any more

	a, b := gets(t, "a permit", true, s.TryAcquire), gets(t, "another", true, s.TryAcquire)
	gets(t, "a third of two", false, s.TryAcquire)
	let(t, a)
	let(t, b, gets(t, "one that was released", true, s.TryAcquire))

	a = gets(t, "a reader", true, m.TryRLock)
	gets(t, "a writer beside it", false, m.TryLock)
	b = gets(t, "a second reader", true, m.TryRLock)
	let(t, a, b)
	a = gets(t, "a writer", true, m.TryLock)
	gets(t, "a reader beside it", false, m.TryRLock)
	gets(t, "a second writer", false, m.TryLock)
	let(t, a)

	campaign := func(value uint64) attempt {
		return func(ctx context.Context) (*Held, bool, error) { return e.TryCampaign(ctx, value) }
	}
	a = gets(t, "a leader", true, campaign(7))
	gets(t, "a second leader", false, campaign(8))
	if value, token, ok, err := e.Leader(ctx); value != 7 || token != a.Token() || !ok || err != nil {
		t.Errorf("the leader is %d with token %d, %t, %v; want 7 with %d", value, token, ok, err, a.Token())
	}
	let(t, a, must(m.RLock(ctx))(t))
}

// Whoever tries again and again gets the permit of a dead holder, once its lease is over.
func TestTryAcquireAfterLease(t *testing.T) {
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	a := must(NewSemaphore(ctx, w.at(1, 0), 1, testLease))(t)
	b := must(NewSemaphore(ctx, w.at(2, 0), 1, testLease))(t)
	ha := must(a.Acquire(ctx))(t)
	if err := w.net.Crash(1); err != nil {
		t.Fatal(err)
	}
	var hb *Held
	testnet.Eventually(t, "the permit of a dead holder", func() bool {
		h, ok, err := b.TryAcquire(ctx)
		hb = h
		return ok && err == nil
	})
	if left := ha.Left(); left > 0 || hb.Token() <= ha.Token() {
		t.Errorf("token %d after %d, whose lease has %v left", hb.Token(), ha.Token(), left)
	}
}

// A permit whose outcome is unknown, as the context ended, is given back as soon as that
// is known.
func TestAcquireUnknown(t *testing.T) {
	w := newWorld(t, 1, 1)
	s := must(NewSemaphore(patient(t), w.at(1, 0), 1, 24*time.Hour))(t)
	mem := must(s.queue.memory(patient(t)))(t)
	permit := mem.at(queueWords)
	if err := permit.Store(patient(t), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{Loss: 1}); err != nil { // answers get lost
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(patient(t), 50*time.Millisecond)
	defer cancel()
	const own = 5<<beatBits | 1
	_, err := exchange(ctx, permit, 0, own)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v: want an unknown outcome", err)
	}
	word := must(w.reg.Uint64(queueWords))(t)
	testnet.Eventually(t, "the permit is taken", func() bool { return word.Load() == own })
	mem.giveBack(ctx, queueWords, own, err)
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the permit is given back", func() bool { return word.Load() == 0 })
}
