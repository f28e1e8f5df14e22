// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// An operation that lasts holds up its own entry, no other.
func TestRingFreesInAnyOrder(t *testing.T) {
	const size = 8
	r, err := NewRing(size)
	if err != nil {
		t.Fatal(err)
	}
	stuck := r.Claim()
	stuck.Publish()
	if r.next() != stuck {
		t.Fatal("another entry was taken")
	}
	for i := range 10 * size {
		op := r.Claim()
		if op == nil {
			t.Fatalf("after %d operations no entry is free, though one is in use of %d", i, size)
		}
		if op == stuck {
			t.Fatal("an entry in use was given away")
		}
		op.Publish()
		r.release(r.next())
	}
	if r.Empty() {
		t.Error("empty, with an operation in flight")
	}
	r.release(stuck)
	if !r.Empty() {
		t.Error("not empty, though everything has completed")
	}
}

// Many post, one takes and completes in random order: each entry has one owner at a
// time, what one poster posts is taken in order, no more are out than there are
// entries, and none is lost.
func TestRingUnderContention(t *testing.T) {
	const size, posters, each = 16, 4, 20000
	r, err := NewRing(size)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range uint64(posters) {
		wg.Go(func() {
			for i := range uint64(each) {
				op := r.Claim()
				for ; op == nil; op = r.Claim() {
					runtime.Gosched()
				}
				op.Key, op.Value = p, i
				op.Publish()
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var next [posters]uint64
	var out []*Op
	for done := 0; done < posters*each; {
		if op := r.next(); op != nil {
			if op.Value != next[op.Key] {
				t.Fatalf("poster %d: operation %d was taken, want %d", op.Key, op.Value, next[op.Key])
			}
			next[op.Key]++
			if out = append(out, op); len(out) > size {
				t.Fatalf("%d operations are out, of %d entries", len(out), size)
			}
		} else if len(out) == 0 {
			runtime.Gosched()
		}
		if len(out) > 0 && (len(out) == size || rng.IntN(2) == 0) {
			i := rng.IntN(len(out))
			op := out[i]
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
			r.release(op)
			done++
		}
	}
	wg.Wait()
	if !r.Empty() {
		t.Error("not empty at the end")
	}
	seen := map[*Op]bool{}
	for range size {
		op := r.Claim()
		if op == nil || seen[op] {
			t.Fatal("an entry was lost, or is there twice")
		}
		seen[op] = true
	}
	if r.Claim() != nil {
		t.Error("more entries than there are")
	}
}
