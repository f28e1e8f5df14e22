// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A lock whose release has begun goes to the next program, or to the same one again, and
// Unlock then tells how the release ended.
func TestStartUnlock(t *testing.T) {
	w := newWorld(t, 2, 1)
	for i, c := range []struct {
		name string
		get  func(node int, offset uint64) func(context.Context) (*Held, error)
	}{
		{"Mutex", func(node int, at uint64) func(context.Context) (*Held, error) {
			return must(NewMutex(patient(t), w.at(node, at), testLease))(t).Lock
		}},
		{"RWMutex, writer", func(node int, at uint64) func(context.Context) (*Held, error) {
			return must(NewRWMutex(patient(t), w.at(node, at), 2, testLease))(t).Lock
		}},
		{"RWMutex, reader", func(node int, at uint64) func(context.Context) (*Held, error) {
			return must(NewRWMutex(patient(t), w.at(node, at), 1, testLease))(t).RLock
		}},
		{"Semaphore", func(node int, at uint64) func(context.Context) (*Held, error) {
			return must(NewSemaphore(patient(t), w.at(node, at), 1, testLease))(t).Acquire
		}},
	} {
		a, b := c.get(1, uint64(i)*1024), c.get(2, uint64(i)*1024)
		for _, next := range []func(context.Context) (*Held, error){a, b, a} {
			h := must(next(patient(t)))(t)
			for range 2 {
				if err := h.StartUnlock(); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
			if err := context.Cause(h.Context()); !errors.Is(err, ErrReleased) {
				t.Errorf("%s: after StartUnlock the context ended with %v, want ErrReleased", c.name, err)
			}
			again := must(next(patient(t)))(t)
			for _, h := range []*Held{h, again} {
				if err := errors.Join(h.Unlock(), h.StartUnlock()); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
	}
}

// A release that has begun survives a restart of the home that keeps its memory, if
// Unlock waits for it.
func TestStartUnlockHomeRestarts(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := newTestMutex(w, 1, testLease)
	if err := must(m.Lock(patient(t)))(t).Unlock(); err != nil { // new memory takes a lease
		t.Fatal(err)
	}
	m.lease = testnet.Patience
	h := must(m.Lock(patient(t)))(t)
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	if err := h.StartUnlock(); err != nil {
		t.Fatal(err)
	}
	w.restart(true)
	w.net.Heal()
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
	if v := must(h.memory().at(turnWord).Load(patient(t)))(t); v != h.free {
		t.Errorf("the word is %#x, want %#x", v, h.free)
	}
}

// A release does not wait for a renewal that has no answer, and follows it.
func TestStartUnlockEndsRenewal(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := newTestMutex(w, 1, testLease)
	if err := must(m.Lock(patient(t)))(t).Unlock(); err != nil { // new memory takes a lease
		t.Fatal(err)
	}
	m.lease = testnet.Patience // so that no other tick comes
	h := must(m.Lock(patient(t)))(t)
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	go h.tick()
	testnet.Eventually(t, "the renewal is under way", func() bool {
		if h.change.TryLock() {
			h.change.Unlock()
			return false
		}
		return true
	})
	if err := h.StartUnlock(); err != nil {
		t.Error(err)
	}
	w.net.Heal()
	testnet.Eventually(t, "the lock is free", func() bool {
		return must(h.memory().at(turnWord).Load(patient(t)))(t) == h.free
	})
}

// A holder whose lease is over hears that from StartUnlock.
func TestStartUnlockLost(t *testing.T) {
	w := newWorld(t, 2, 1)
	a, b := newTestMutex(w, 1, testLease), newTestMutex(w, 2, testLease)
	h := must(a.Lock(patient(t)))(t)
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	if err := must(b.Lock(patient(t)))(t).StartUnlock(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := h.StartUnlock(); !errors.Is(err, ErrLost) {
			t.Errorf("StartUnlock of a lost lock: %v, want ErrLost", err)
		}
	}
	w.net.Heal()
	h.hindered = errors.Join(xdpfab.ErrPeerSilent, xdpfab.ErrNotExecuted)
	if err := h.notRenewed(); errors.Is(err, xdpfab.ErrNotExecuted) || !strings.HasSuffix(err.Error(), "the lease is lost: "+
		stopWork+": peer does not answer\nnot executed") {
		t.Errorf("%v, want how the last renewal failed, and nothing about the certainty of the loss", err)
	}
	h = must(b.Lock(patient(t)))(t)
	if _, err := exchange(patient(t), h.memory().at(turnWord), h.own, h.free); err != nil {
		t.Fatal(err)
	}
	h.extend() // and finds that another program has the word
	if err := h.StartUnlock(); !errors.Is(err, ErrLost) {
		t.Errorf("StartUnlock of a lock that another program has taken: %v, want ErrLost", err)
	}
}

// A release that arrives after the lease takes the lock from nobody.
func TestStartUnlockArrivesLate(t *testing.T) {
	w := newWorld(t, 2, 1)
	const lease = 10 * testLease // no busy machine keeps the second holder from its release for so long
	a, b := newTestMutex(w, 1, lease), newTestMutex(w, 2, lease)
	late := must(a.Lock(patient(t)))(t)
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	_ = late.StartUnlock() // on a busy machine the lease may be over already
	if err := must(b.Lock(patient(t)))(t).Unlock(); err != nil {
		t.Error(err)
	}
	h := must(b.Lock(patient(t)))(t)
	w.net.Heal()
	if err := late.Unlock(); err == nil {
		t.Error("a release that arrived after the lease has no error")
	}
	if _, ok, err := a.TryLock(patient(t)); ok || err != nil {
		t.Errorf("the lock is free while another program holds it (%v)", err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}
