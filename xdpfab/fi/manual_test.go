// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// With manual progress on several queues, whoever waits for anything serves all queues:
// an operation of one queue, which starts when one of another queue has completed, and
// the memory that peers address by any queue.
func TestManualQueues(t *testing.T) {
	for _, model := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain} {
		t.Run(model.String(), func(t *testing.T) {
			testManualQueues(t, fi.DomainAttr{Progress: fi.ProgressManual, Threading: model})
		})
	}
}

func testManualQueues(t *testing.T, manual fi.DomainAttr) {
	const queues, each = 3, 50
	a, s, _ := onVeth(t, queues, manual, manual)
	served, err := s.NewCounter() // of all that peers do to the server's memory
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.NewRegion("counted", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BindRegion(r, served, fi.BindRemoteRead); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	over := make(chan struct{})
	serving.Go(func() {
		if err := served.Wait(ctx(t), queues*each); err != nil {
			t.Error(err)
		}
		for { // the last answers have still to leave
			select {
			case <-over:
				return
			default:
				s.Progress()
			}
		}
	})
	b := &bench{T: t, client: a, server: s, key: r.Key()}
	b.av, _ = a.NewAddressVector()
	b.dest, err = b.av.Insert(ctx(t), s.Name(0))
	b.ok(err)
	var eps []*fi.Endpoint
	var cqs []*fi.CompletionQueue
	var moved []*fi.Counter
	used := map[int]bool{}
	for range queues {
		c := b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{}, c)
		eps, cqs, moved = append(eps, ep), append(cqs, cq), append(moved, c)
		used[ep.Queue()] = true
	}
	if len(used) != queues {
		t.Fatalf("endpoints on queues %v", used)
	}
	// A ring: each operation is started by one of the queue before. One goroutine waits,
	// for the last completion alone.
	for n := range each {
		for i, ep := range eps {
			if n+i > 0 {
				before := (i + queues - 1) % queues
				at := uint64(n)
				if before < i {
					at++
				}
				b.ok(ep.FetchAtomic(when(b.fetchAdd(0), moved[before], at), 0))
			}
		}
	}
	b.ok(eps[0].FetchAtomic(b.fetchAdd(0), 0))
	b.ok(cqs[queues-1].Wait(ctx(t), each))
	for _, cq := range cqs {
		for _, done := range b.take(cq, each) {
			if done.Err != nil {
				t.Error(done.Err)
			}
		}
	}
	// Goroutines that wait for different queues, at the same time if they may, take
	// turns.
	var all sync.WaitGroup
	for i := range queues {
		begin := all.Go
		if manual.Threading == fi.ThreadDomain { // one at a time
			begin = func(f func()) { f() }
		}
		begin(func() {
			for range each {
				m := b.fetchAdd(1)
				if err := errors.Join(eps[i].FetchAtomic(m, 0), cqs[i].Wait(ctx(t), 1)); err != nil {
					t.Error(err)
					return
				}
				var c [1]fi.Completion
				if n, err := cqs[i].Read(c[:]); n != 1 || err != nil {
					t.Errorf("%d completions, %v", n, err)
				}
			}
		})
	}
	all.Wait()
	close(over)
	serving.Wait()
	for i := range 2 {
		word, err := r.Uint64(i)
		if err != nil || word.Load() != queues*each {
			t.Errorf("word %d: %d, %v: want %d", i, word.Load(), err, queues*each)
		}
	}
}
