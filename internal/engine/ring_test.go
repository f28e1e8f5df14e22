// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// aRing is one of an engine that does nothing else.
func aRing(t *testing.T, size int) *Ring {
	t.Helper()
	r, err := NewRing(size, Contexts{})
	if err != nil {
		t.Fatal(err)
	}
	r.origin = &Origin{e: &Engine{}}
	return r
}

// ignored takes a completion and does nothing.
type ignored struct{}

func (ignored) Complete(*Submission, *Completion, *Later) {}

// An operation that lasts holds up its own flight, no other.
func TestRingFreesInAnyOrder(t *testing.T) {
	const size = 8
	r := aRing(t, size)
	post := func() *flight {
		s := r.Claim()
		if s == nil {
			t.Fatal("no entry is free")
		}
		s.Verb, s.Context = 1, ignored{}
		s.Publish()
		return r.next()
	}
	stuck := post()
	for range 10 * size {
		f := post()
		if f == stuck {
			t.Fatal("a flight in use was given away")
		}
		r.complete(f, Result{})
	}
	if r.Empty() {
		t.Error("empty, with an operation in flight")
	}
	r.complete(stuck, Result{})
	if !r.Empty() {
		t.Error("not empty, though everything has completed")
	}
}

// When all flights are in use, what is published waits in the cells, and then the ring
// is full.
func TestRingHoldsBack(t *testing.T) {
	const size = 8
	r := aRing(t, size)
	publish := func() bool {
		s := r.Claim()
		if s == nil {
			return false
		}
		s.Verb, s.Context = 1, ignored{}
		s.Publish()
		return true
	}
	var out []*flight
	for range size {
		publish()
		out = append(out, r.next())
	}
	for range size {
		if !publish() {
			t.Fatal("an entry that the engine has taken is not free")
		}
	}
	if publish() || r.collectable() || !r.pending() {
		t.Error("more is accepted, or taken, than there is room for")
	}
	r.complete(out[3], Result{})
	if !r.collectable() || r.next() == nil || !publish() {
		t.Error("what has completed makes no room")
	}
}

// An entry that is given back leaves nothing to do.
func TestAbandon(t *testing.T) {
	r := aRing(t, 2)
	r.Claim().Abandon()
	if !r.collectable() || r.next() != nil || !r.Empty() {
		t.Error("an abandoned entry is taken for an operation")
	}
}

// Many post, one takes and completes in random order: each entry has one owner at a
// time, what one poster posts is taken in order, no more are out than there are
// flights, and none is lost.
func TestRingUnderContention(t *testing.T) {
	const size, posters, each = 16, 4, 20000
	r := aRing(t, size)
	var wg sync.WaitGroup
	for p := range uint64(posters) {
		wg.Go(func() {
			for i := range uint64(each) {
				s := r.Claim()
				for ; s == nil; s = r.Claim() {
					runtime.Gosched()
				}
				s.Verb, s.Context, s.Key, s.Offset = 1, ignored{}, p, i
				s.Publish()
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var next [posters]uint64
	var out []*flight
	for done := 0; done < posters*each; {
		if r.collectable() {
			f := r.next()
			if f.Offset != next[f.Key] {
				t.Fatalf("poster %d: operation %d was taken, want %d", f.Key, f.Offset, next[f.Key])
			}
			next[f.Key]++
			out = append(out, f)
		} else if len(out) == 0 {
			runtime.Gosched()
		}
		if len(out) > 0 && (len(out) == size || rng.IntN(2) == 0) {
			i := rng.IntN(len(out))
			f := out[i]
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
			r.complete(f, Result{})
			done++
		}
	}
	wg.Wait()
	if !r.Empty() {
		t.Error("not empty at the end")
	}
	seen := map[*Submission]bool{}
	for range size {
		s := r.Claim()
		if s == nil || seen[s] {
			t.Fatal("an entry was lost, or is there twice")
		}
		seen[s] = true
	}
	if r.Claim() != nil {
		t.Error("more entries than there are")
	}
}
