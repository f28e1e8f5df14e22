// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
)

// aQueue is a completion queue without a domain.
func aQueue(size int64) *CompletionQueue {
	return &CompletionQueue{entries: make([]entry, size), beside: make([]beside, size), mask: uint64(size - 1), size: size}
}

// A goroutine that has found the queue full has counted itself for a moment. Whoever
// borrows then gives back no more than it took, or the queue would promise a place twice.
func TestCQPromisesNoPlaceTwice(t *testing.T) {
	q := aQueue(1024)
	for range q.size {
		if !q.reserve() {
			t.Fatal("full too early")
		}
	}
	q.reserved.Add(1) // the first half of reserve
	if q.borrow() {
		t.Error("borrowed from a full queue")
	}
	q.reserved.Add(-1) // the other half
	if n := q.reserved.Load(); n != q.size {
		t.Errorf("%d places of %d are taken, want all", n, q.size)
	}
}

// Places that were reserved in advance, by a goroutine that posted to the engine itself
// and does so no more, are not lost for those that post through the ring: as many
// operations as the queue has entries can be outstanding or unread.
func TestCQLendsNoPlaceForGood(t *testing.T) {
	q := aQueue(1024)
	if !q.borrow() {
		t.Fatal("nothing to borrow of an empty queue")
	}
	taken := int64(1)
	for range 2 {
		posted := 0
		for q.reserve() {
			taken, posted = taken+1, posted+1
		}
		for range posted {
			q.push(nil, nil, &engine.Completion{}, nil)
		}
		q.show()
	}
	if taken != q.size {
		t.Errorf("%d operations were accepted by a queue of %d", taken, q.size)
	}
}

// Two endpoints with a small queue in common, and goroutines that post and read as fast
// as they can, by every way there is: each operation completes once, the latest of each
// goroutine is the last to apply, and no place of the queue is lost.
func TestCQConserves(t *testing.T) {
	const posters, each = 4, 2000
	for _, mode := range []ProgressMode{ProgressAuto, ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := sleepLong(t)
			a, b, mem := pipe(t, DomainAttr{Progress: mode}, DomainAttr{})
			t.Cleanup(func() { _ = errors.Join(a.CloseAll(), b.CloseAll()) })
			p, err := a.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			region, err := p.Lookup(ctx, "r")
			if err != nil {
				t.Fatal(err)
			}
			av, _ := a.NewAddressVector()
			cq, _ := a.NewCompletionQueue(CQAttr{Size: 64})
			dest, err := av.Insert(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			var eps [2]*Endpoint
			for i := range eps {
				eps[i], _ = a.NewEndpoint(EndpointAttr{Number: AnyNumber, Size: 32, InitiateOnly: true})
				if err := errors.Join(eps[i].Bind(av, 0), eps[i].Bind(cq, 0), eps[i].Enable()); err != nil {
					t.Fatal(err)
				}
			}
			for i := range posters {
				go func() {
					for n := range each {
						value := binary.LittleEndian.AppendUint64(nil, uint64(n+1))
						var err error
						for err = ErrAgain; errors.Is(err, ErrAgain); runtime.Gosched() {
							flags := []OpFlags{0, 0, FlagMore, FlagInject, FlagFence}[n%5]
							err = eps[i%2].Atomic(&Msg{Buf: value, Count: 1, Dest: dest, Offset: uint64(8 * i), Key: region.Key,
								Datatype: atomic.Uint64, Op: atomic.Write, Context: i*each + n}, flags)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				}()
			}
			seen, list := make([]int, posters*each), make([]Completion, 16)
			for got := 0; got < len(seen); {
				if err := cq.Wait(ctx, 1); err != nil {
					t.Fatalf("after %d of %d completions: %v", got, len(seen), err)
				}
				n, err := cq.Read(list)
				if err != nil {
					c, _ := cq.ReadErr()
					t.Fatal(c.Err)
				}
				for _, c := range list[:n] {
					seen[c.Context.(int)]++
				}
				got += n
			}
			for i, n := range seen {
				if n != 1 {
					t.Fatalf("operation %d completed %d times", i, n)
				}
			}
			for i := range posters {
				if v := binary.LittleEndian.Uint64(mem[8*i:]); v != each {
					t.Errorf("the last write applied to word %d is number %d of %d", i, v, each)
				}
			}
			eps[0].stepper.Call(func() {
				if n := cq.reserved.Load() - cq.lent; n != 0 {
					t.Errorf("%d places are taken of an empty queue", n)
				}
			})
		})
	}
}
