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

// No two programs hold the lock at the same time if some wait for it and others try.
func TestMutexTries(t *testing.T) {
	contend(t, 1, func(ctx context.Context, at Place, rng *rand.Rand) (*Held, bool, error) {
		m, err := NewMutex(ctx, at, testLease)
		if err != nil {
			return nil, false, err
		}
		if rng.IntN(3) == 0 {
			h, err := m.Lock(ctx)
			return h, true, err
		}
		for range 64 {
			if h, ok, err := m.TryLock(ctx); ok || err != nil {
				return h, true, err
			}
			time.Sleep(testLease / 16)
		}
		return nil, false, nil
	})
}

// tried returns what TryLock gets, or nil.
func tried(t *testing.T, m *Mutex) *Held {
	t.Helper()
	h, ok, err := m.TryLock(patient(t))
	if err != nil || ok != (h != nil) {
		t.Fatalf("%v, %t, %v", h, ok, err)
	}
	return h
}

// used returns locks of several nodes whose memory is not new, so nobody waits for a
// lease.
func used(t *testing.T, nodes int, lease time.Duration) (w *world, locks []*Mutex) {
	w = newWorld(t, nodes, 1)
	for i := range nodes {
		locks = append(locks, newTestMutex(w, 1+i, lease))
	}
	words := must(xdpfab.Vector[uint64](patient(t), w.at(1, 0).Home, "parts"))(t)
	if err := words.Store(patient(t), []uint64{ticketWord, turnWord}, []uint64{4, 5 << beatBits}); err != nil {
		t.Fatal(err)
	}
	return w, locks
}

// A try gets a lock that is free, and neither one that another program holds nor one that
// a program waits for. In vain it leaves no ticket.
func TestTryLock(t *testing.T) {
	_, m := used(t, 2, 24*time.Hour)
	a := tried(t, m[0])
	if a == nil {
		t.Fatal("the lock is free")
	}
	for range 3 {
		if h := tried(t, m[1]); h != nil {
			t.Fatal("two programs hold the lock")
		}
	}
	got := make(chan *Held)
	go func() { got <- must(m[1].Lock(patient(t)))(t) }()
	word := must(m[0].memory(patient(t)))(t).at(ticketWord)
	testnet.Eventually(t, "another waits", func() bool { return must(word.Load(patient(t)))(t) == 6 })
	if err := a.Unlock(); err != nil {
		t.Fatal(err)
	}
	b := <-got
	if h := tried(t, m[0]); h != nil || b.Token() != a.Token()+1 {
		t.Errorf("tried in vain: %v, and the one who waited has token %d after %d", h, b.Token(), a.Token())
	}
	if err := b.Unlock(); err != nil {
		t.Fatal(err)
	}
	if h := tried(t, m[0]); h == nil || h.Token() != b.Token()+1 {
		t.Errorf("%v: want the next token", h)
	}
}

// Whoever tries again and again gets the lock of a dead holder after its lease, also in
// new memory, and not before.
func TestTryLockAfterLease(t *testing.T) {
	w := newWorld(t, 2, 1)
	a, b := newTestMutex(w, 1, testLease), newTestMutex(w, 2, testLease)
	began := time.Now()
	var ha *Held
	testnet.Eventually(t, "the lock in new memory", func() bool { ha = tried(t, a); return ha != nil })
	if took := time.Since(began); took < testLease {
		t.Errorf("new memory was used after %v: holders in former memory have %v", took, testLease)
	}
	if err := w.net.Crash(1); err != nil {
		t.Fatal(err)
	}
	var hb *Held
	testnet.Eventually(t, "the lock of a dead holder", func() bool { hb = tried(t, b); return hb != nil })
	if left := ha.Left(); left > 0 || hb.Token() <= ha.Token() {
		t.Errorf("token %d after %d, whose lease has %v left", hb.Token(), ha.Token(), left)
	}
}

// A try whose outcome is unknown, as its context ends, gives back what it may have got as
// soon as that is known: the next program waits for no lease.
func TestTryLockUnknown(t *testing.T) {
	w, m := used(t, 2, 24*time.Hour)
	mem := must(m[0].memory(patient(t)))(t)
	given, err := w.reg.Uint64(ticketWord)
	if err == nil {
		err = w.net.SetFaults(home, 1, xdpfab.Faults{Loss: 1}) // the home executes, and nobody hears of it
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(patient(t))
	go func() {
		defer cancel()
		for given.Load() != 5 && ctx.Err() == nil { // else take says what else ended it
			time.Sleep(time.Millisecond)
		}
	}()
	h, err := m[0].take(ctx, mem, 5)
	if h != nil || !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v: want no lock, and the cause", h, err)
	}
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the ticket of the try is left", func() bool {
		return must(mem.at(leftWord+5).Load(patient(t)))(t) == 5
	})
	if err := must(m[1].Lock(patient(t)))(t).Unlock(); err != nil {
		t.Error(err)
	}
}

// A try that loses against another program leaves it the lock.
func TestTryLockSlower(t *testing.T) {
	_, m := used(t, 2, 24*time.Hour)
	a := tried(t, m[0])
	mem := must(m[1].memory(patient(t)))(t)
	if h, err := m[1].take(patient(t), mem, 5); h != nil || err != nil {
		t.Errorf("%v, %v: want nothing", h, err)
	}
	if err := a.Unlock(); err != nil {
		t.Error(err)
	}
}
