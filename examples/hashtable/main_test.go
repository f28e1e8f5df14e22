// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

func newTable(t *testing.T, n *try.Nodes) table {
	t.Helper()
	ctx := try.Context(t)
	v, err := xdpfab.Vector[xdpfab.U128](ctx, n.Peer(ctx), "table", xdpfab.AutoRebind())
	if err != nil {
		t.Fatal(err)
	}
	return table{v}
}

// Programs that put the same keys at the same time leave each key once, with a value that
// one of them put.
func TestHashTable(t *testing.T) {
	n, ctx := try.New(t, "table", 16*slots), try.Context(t)
	n.Faults(try.Bad)
	h := newTable(t, n)
	const most = 150
	var all sync.WaitGroup
	for i := range uint64(4) {
		all.Go(func() {
			for key := uint64(1); key <= most; key++ {
				if err := h.put(ctx, key, 10*key+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for key := uint64(1); key <= most; key++ {
		if value, err := h.get(ctx, key); err != nil || value/10 != key || value%10 > 3 {
			t.Errorf("key %d has value %d, %v", key, value, err)
		}
	}
	if err := h.put(ctx, 7, 0); err != nil {
		t.Error(err)
	}
	for _, key := range []uint64{7, most + 1} { // deleted, never put
		if value, err := h.get(ctx, key); value != 0 || err != nil {
			t.Errorf("key %d has value %d, %v; want none", key, value, err)
		}
	}
	used := 0
	for i := range slots {
		if n.Word(2*i+1).Load() != 0 || n.Word(2*i).Load() != 0 {
			used++
		}
	}
	if used != most {
		t.Errorf("%d slots are used by %d keys", used, most)
	}
	n.Restart()
	if value, err := h.get(ctx, 1); value != 0 || err != nil {
		t.Errorf("after the memory is lost: %d, %v; want none", value, err)
	}
}

// A full table says so, and finds what it has.
func TestFull(t *testing.T) {
	n, ctx := try.New(t, "table", 16*slots), try.Context(t)
	h := newTable(t, n)
	for i := range slots {
		n.Word(2 * i).Store(1) // of a slot whatever half is the key: both
		n.Word(2*i + 1).Store(1)
	}
	if err := h.put(ctx, 2, 2); err != errFull {
		t.Errorf("put into a full table: %v", err)
	}
	if value, err := h.get(ctx, 1); value != 1 || err != nil {
		t.Errorf("key 1 has value %d, %v", value, err)
	}
	if value, err := h.get(ctx, 2); value != 0 || err != nil {
		t.Errorf("key 2 has value %d, %v; want none", value, err)
	}
}

func TestRun(t *testing.T) {
	*keys = 50
	n := try.New(t, "table", 16*slots)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
