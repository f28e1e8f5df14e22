// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
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

// When all flights are in use, published operations wait in the cells, and then the ring
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
	r.Claim().Release()
	if !r.collectable() || r.next() != nil || !r.Empty() {
		t.Error("an abandoned entry is taken for an operation")
	}
}

// Many post, one takes and completes in random order: each entry has one owner at a
// time, the operations of one poster are taken in order, no more are out than there are
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

// shelf counts completions, as they come and as they are shown.
type shelf struct{ told, shown int }

func (s *shelf) Complete(*Submission, *Completion, *Later) { s.told++ }
func (s *shelf) Succeed(done []*Submission, _ *Completion) { s.told += len(done) }
func (s *shelf) Follow(_ *Submission, done []Follower, _ *Completion) {
	s.told += len(done)
}
func (s *shelf) Flush() { s.shown = s.told }

// A goroutine that closes a peer, or removes a ring, by a call sees the completions as
// soon as the call returns, though the round that it belongs to goes on.
func TestCloseShowsWhatHasCompleted(t *testing.T) {
	for name, end := range map[string]func(e *Engine, r *Ring, p *Peer){
		"peer closed":  func(_ *Engine, _ *Ring, p *Peer) { p.Close() },
		"ring removed": func(e *Engine, r *Ring, p *Peer) { p.r.end(session.ClosedHere); e.RemoveRing(r) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			e, p, s := c.nodes[0].eng[0], c.peer(ethernet()), &shelf{}
			r, err := NewRing(8, s)
			if err != nil {
				t.Fatal(err)
			}
			e.AddRing(r, nil)
			c.pass = func(int, []byte) bool { return false }
			op := r.Claim()
			op.Peer, op.Verb, op.Opcode, op.Datatype, op.Count = p.ID(), wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), 1
			op.Publish()
			c.step()
			var seen shelf
			e.Call(func() { end(e, r, p); seen = *s })
			c.step()
			if seen != (shelf{1, 1}) {
				t.Errorf("after the call, %d operations have completed and %d are shown, want 1 and 1", seen.told, seen.shown)
			}
		})
	}
}

// inlines records the value that comes with each completion.
type inlines struct{ all [][InlineResult]byte }

func (r *inlines) Complete(_ *Submission, c *Completion, _ *Later) { r.all = append(r.all, c.Inline) }

// The completion of an operation that returns nothing shows no value of another one.
func TestNoValueOfAnother(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 0x1234)
	r := &inlines{}
	for _, verb := range []wire.Verb{wire.VerbFetch, wire.VerbAtomic} {
		c.submit(p, true, func(s *Submission) { s.Context, s.Verb = r, verb })
		for len(r.all) == 0 {
			c.step()
		}
	}
	for len(r.all) < 2 {
		c.step()
	}
	if r.all[0] == [InlineResult]byte{} {
		t.Error("the fetch returned nothing")
	}
	if r.all[1] != [InlineResult]byte{} {
		t.Errorf("the base operation shows % x", r.all[1])
	}
}
