// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A chain of work of every kind runs without the caller: each piece moves the counter
// that the next one waits for.
func TestDeferredWork(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		start, second, third, fourth, end := b.counter(), b.counter(), b.counter(), b.counter(), b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{})
		fetch, compare := b.fetchAdd(0), b.fetchAdd(0)
		compare.Op, compare.Compare = atomic.Cswap, []byte{2, 0, 0, 0, 0, 0, 0, 0}
		for _, w := range []*fi.Work{
			{When: fi.Threshold{Counter: fourth, Value: 9}, Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Compare, Msg: compare}, Completion: end},
			{When: fi.Threshold{Counter: third, Value: 2}, Do: fi.CounterWork{Counter: fourth, Value: 9, Set: true}, Completion: end},
			{When: fi.Threshold{Counter: second, Value: 2}, Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Fetch, Msg: fetch, Flags: fi.FlagFence}, Completion: third},
			{When: fi.Threshold{Counter: second, Value: 1}, Do: fi.CounterWork{Counter: third, Value: 1}, Completion: second},
			{When: fi.Threshold{Counter: start, Value: 1}, Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Base, Msg: b.add(0)}, Completion: second},
		} {
			b.ok(b.client.QueueWork(w))
		}
		b.nothing(cq)
		start.Add(1)
		b.ok(end.Wait(ctx(b.T), 2))
		b.take(cq, 3)
		if before(fetch) != 1 || before(compare) != 2 {
			b.Errorf("the fetch found %d, the comparison %d: want 1 and 2", before(fetch), before(compare))
		}
		if n := b.load(ep, cq, 0); n != 1 {
			b.Errorf("%d in memory, want 1, which the comparison has stored", n)
		}
		for name, is := range map[string][2]uint64{
			"second": {second.Read(), 2}, "third": {third.Read(), 2}, "fourth": {fourth.Read(), 9}, "end": {end.Read(), 2},
		} {
			if is[0] != is[1] {
				b.Errorf("%s is %d, want %d", name, is[0], is[1])
			}
		}
		b.ok(errors.Join(start.Close(), second.Close(), third.Close(), fourth.Close(), end.Close()))
	})
}

// A piece of work that fails counts as a failure, and so starts nothing.
func TestDeferredWorkFails(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		start, end := b.counter(), b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{})
		wrong := b.add(0)
		wrong.Key = 99
		b.ok(b.client.QueueWork(&fi.Work{When: fi.Threshold{Counter: start, Value: 1}, Completion: end,
			Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Base, Msg: wrong}}))
		start.Add(1)
		if done := b.take(cq, 1); !errors.Is(done[0].Err, fi.ErrNoKey) {
			b.Errorf("%v", done[0].Err)
		}
		b.counts("the failure", end, 0, 1)
	})
}

// Work can be cancelled, one piece or all of it, until it starts; each piece ends once.
func TestCancelWork(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		start, end, target := b.counter(), b.counter(), b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{})
		op := func(at uint64) *fi.Work {
			return &fi.Work{When: fi.Threshold{Counter: start, Value: at}, Completion: end,
				Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Base, Msg: b.add(0)}}
		}
		change := &fi.Work{When: fi.Threshold{Counter: start, Value: 1}, Completion: end, Do: fi.CounterWork{Counter: target, Value: 1}}
		first, second, third := op(1), op(1), op(2)
		for _, w := range []*fi.Work{first, second, third, change} {
			b.ok(b.client.QueueWork(w))
		}
		if err := b.client.QueueWork(first); !errors.Is(err, fi.ErrBusy) {
			b.Errorf("queued twice: %v", err)
		}
		b.ok(errors.Join(b.client.CancelWork(first), b.client.CancelWork(change)))
		if done := b.take(cq, 1); !errors.Is(done[0].Err, fi.ErrCancelled) || !errors.Is(done[0].Err, fi.ErrNotExecuted) {
			b.Errorf("%v", done[0].Err)
		}
		b.counts("two cancelled", end, 0, 2)
		for _, w := range []*fi.Work{first, change, nil, {}} {
			if err := b.client.CancelWork(w); !errors.Is(err, fi.ErrNotQueued) {
				b.Errorf("cancelled again: %v", err)
			}
		}
		start.Add(1)
		b.take(cq, 1)
		b.counts("one done", end, 1, 2)
		if err := b.client.CancelWork(second); !errors.Is(err, fi.ErrNotQueued) {
			b.Errorf("cancelled when it was done: %v", err)
		}
		b.ok(b.client.QueueWork(first)) // a Work may be used again
		b.take(cq, 1)
		b.ok(ep.Atomic(when(b.add(0), start, 2), 0))
		b.client.FlushWork()
		b.take(cq, 2)
		b.counts("one flushed", end, 2, 3)
		start.Add(1)
		b.nothing(cq)
		if n := b.load(ep, cq, 0); n != 2 || target.Read() != 0 {
			b.Errorf("%d operations and %d changes, want 2 and 0", n, target.Read())
		}
		b.ok(errors.Join(start.Close(), end.Close(), target.Close()))
	})
}

// Work that cannot be done is refused when it is queued.
func TestWorkRefusals(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	c := b.counter()
	foreign, err := f.server.NewCounter()
	b.ok(err)
	foreignEP, err := f.server.NewEndpoint(fi.EndpointAttr{Number: 3})
	b.ok(err)
	ep, _ := b.endpoint(fi.EndpointAttr{})
	at := fi.Threshold{Counter: c, Value: 1}
	two := b.add(0)
	two.Trigger = &at
	for name, x := range map[string]struct {
		w    *fi.Work
		want error
	}{
		"nil":                 {nil, fi.ErrNotImplemented},
		"nothing to do":       {&fi.Work{When: at}, fi.ErrNotImplemented},
		"no counter":          {&fi.Work{Do: fi.CounterWork{Counter: c}}, fi.ErrForeign},
		"no counter to move":  {&fi.Work{When: at, Do: fi.CounterWork{}}, fi.ErrForeign},
		"foreign target":      {&fi.Work{When: at, Do: fi.CounterWork{Counter: foreign}}, fi.ErrForeign},
		"foreign completion":  {&fi.Work{When: at, Do: fi.CounterWork{Counter: c}, Completion: foreign}, fi.ErrForeign},
		"foreign endpoint":    {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: foreignEP, Msg: b.add(0)}}, fi.ErrForeign},
		"no message":          {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: ep}}, fi.ErrLength},
		"two triggers":        {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: ep, Msg: two}}, fi.ErrNotImplemented},
		"no such form":        {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: ep, Func: 77, Msg: b.add(0)}}, fi.ErrOpNotSupported},
		"no such flag":        {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: ep, Msg: b.add(0), Flags: 1 << 40}}, fi.ErrBadFlags},
		"result of the wrong": {&fi.Work{When: at, Do: fi.AtomicWork{Endpoint: ep, Func: atomic.Fetch, Msg: b.add(0)}}, fi.ErrLength},
	} {
		if err := f.client.QueueWork(x.w); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	b.ok(c.Close())
}

// Changes of counters that wait are bounded, and a domain that ends cancels them.
func TestWorkIsBounded(t *testing.T) {
	a, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.CloseAll()
	c, err := a.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	end, err := a.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	queue := func() error {
		return a.QueueWork(&fi.Work{When: fi.Threshold{Counter: c, Value: 1}, Do: fi.CounterWork{Counter: c}, Completion: end})
	}
	for range 1 << 16 {
		if err := queue(); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue(); !errors.Is(err, fi.ErrAgain) {
		t.Errorf("one too many: %v", err)
	}
	if err := a.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("close with counters: %v", err)
	}
	if err := a.CloseAll(); err != nil {
		t.Fatal(err)
	}
	if n := end.ReadErr(); n != 1<<16 {
		t.Errorf("%d cancelled, want %d", n, 1<<16)
	}
	if err := queue(); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// An operation that is cancelled while its endpoint closes has completed when Close
// returns, whichever of the two has taken it out.
func TestFlushBesideClose(t *testing.T) {
	x := setUp(t, fi.DomainAttr{}, 64)
	b := &bench{t, x.client, x.server, x.av, x.dest, 1}
	for range 50 {
		gate := b.counter()
		var eps []*fi.Endpoint
		var cqs []*fi.CompletionQueue
		for range 8 {
			cq, err := b.client.NewCompletionQueue(fi.CQAttr{Size: 64})
			b.ok(err)
			ep, err := b.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 64})
			b.ok(err)
			b.ok(errors.Join(ep.Bind(b.av, 0), ep.Bind(cq, 0), ep.Enable()))
			b.ok(ep.Atomic(when(b.add(0), gate, 1), 0))
			eps, cqs = append(eps, ep), append(cqs, cq)
		}
		var all sync.WaitGroup
		all.Go(b.client.FlushWork)
		for i, ep := range eps {
			all.Go(func() {
				if err := ep.Close(); err != nil {
					b.Error(err)
				}
				if c, ok := cqs[i].ReadErr(); !ok || !errors.Is(c.Err, fi.ErrCancelled) {
					b.Errorf("after Close: %t, %v, want a cancelled operation", ok, c.Err)
				}
			})
		}
		all.Wait()
		for _, cq := range cqs {
			b.ok(cq.Close())
		}
		b.ok(gate.Close())
	}
}
