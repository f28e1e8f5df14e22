// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	xsync "github.com/xdpfab/xdpfab/xdpfab/sync"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// resource is what a lock protects: it refuses old tokens.
type resource struct {
	mu     sync.Mutex
	newest uint64
	value  int
}

// add adds one in two steps, which go wrong if two holders do it at the same time. It
// reports whether it did.
func (r *resource) add(token uint64) bool {
	do := func(f func()) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if token < r.newest {
			return false
		}
		r.newest = token
		f()
		return true
	}
	read := 0
	return do(func() { read = r.value }) && do(func() { r.value = read + 1 })
}

// Holders that take turns in a bad network change what the lock protects one at a time.
func TestLock(t *testing.T) {
	n, ctx := try.New(t, "locks", 4096), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	var r resource
	var mu sync.Mutex
	var all sync.WaitGroup
	added, tokens := 0, map[uint64]bool{}
	for range 3 {
		l, err := xsync.NewMutex(ctx, xsync.Place{Home: peer, Region: "locks"}, 400*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range 8 {
				h, err := l.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if tokens[h.Token()] {
					t.Errorf("two holders have token %d", h.Token())
				}
				tokens[h.Token()] = true
				mu.Unlock()
				if r.add(h.Token()) {
					mu.Lock()
					added++
					mu.Unlock()
				}
				_ = h.Unlock() // it may be lost: then the resource refused it
			}
		})
	}
	all.Wait()
	if r.value != added || added == 0 {
		t.Errorf("%d additions made %d", added, r.value)
	}
}

func TestRun(t *testing.T) {
	*times, *lease = 3, 100*time.Millisecond
	n := try.New(t, "locks", 4096)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
