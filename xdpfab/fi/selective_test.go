// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// selective makes an endpoint whose queue is bound with BindSelective, with a counter
// for both directions.
func selective(t *testing.T, f *fixture, attr fi.EndpointAttr) (*fi.Endpoint, *fi.CompletionQueue, *fi.Counter) {
	t.Helper()
	attr.Number = fi.AnyNumber
	ep, err := f.client.NewEndpoint(attr)
	if err != nil {
		t.Fatal(err)
	}
	cq, err1 := f.client.NewCompletionQueue(fi.CQAttr{Size: 64})
	counter, err2 := f.client.NewCounter()
	if err := errors.Join(err1, err2, ep.Bind(f.av, 0), ep.Bind(cq, fi.BindSelective|fi.BindTransmit),
		ep.Bind(counter, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return ep, cq, counter
}

// With a queue that is bound selectively, the operations that ask for a completion make
// one, and so do those that fail. The counter counts all.
func TestSelectiveCompletion(t *testing.T) {
	for _, size := range []int{8, 16} { // one by one, and a frame at a time
		f := setUp(t, fi.DomainAttr{}, 64)
		ep, cq, counter := selective(t, f, fi.EndpointAttr{OpFlags: fi.FlagCompletion})
		m := fi.Msg{Buf: make([]byte, size), Result: make([]byte, size), Compare: make([]byte, size),
			Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		forms := map[string]func(flags fi.OpFlags, bad bool) error{
			"base": func(flags fi.OpFlags, bad bool) error {
				return ep.Atomic(&fi.Msg{Buf: m.Buf, Dest: f.dest, Key: key(bad), Datatype: m.Datatype, Op: m.Op}, flags)
			},
			"fetch": func(flags fi.OpFlags, bad bool) error {
				return ep.FetchAtomic(&fi.Msg{Buf: m.Buf, Result: m.Result, Dest: f.dest, Key: key(bad), Datatype: m.Datatype, Op: m.Op}, flags)
			},
			"compare": func(flags fi.OpFlags, bad bool) error {
				return ep.CompareAtomic(&fi.Msg{Buf: m.Buf, Compare: m.Compare, Result: m.Result, Dest: f.dest, Key: key(bad), Datatype: m.Datatype, Op: atomic.Cswap}, flags)
			},
		}
		done, failed := uint64(0), uint64(0)
		for name, post := range forms {
			for _, c := range []struct {
				flags fi.OpFlags
				bad   bool
				entry bool
			}{
				{0, false, false},
				{fi.FlagDeliveryComplete, false, false},
				{fi.FlagCompletion, false, true},
				{fi.FlagDefaults, false, true},
				{fi.FlagDefaults | fi.FlagFence, false, true},
				{0, true, true},
				{fi.FlagCompletion, true, true},
			} {
				end := fi.Msg{Buf: m.Buf, Dest: f.dest, Key: 1, Datatype: m.Datatype, Op: m.Op, Context: "end"}
				if err := errors.Join(post(c.flags, c.bad), ep.Atomic(&end, fi.FlagCompletion|fi.FlagFence)); err != nil {
					t.Fatalf("%s with %v: %v", name, c.flags, err)
				}
				entries := 0
				for {
					got := next(t, cq)
					if got.Context == any("end") {
						break
					}
					if (got.Err != nil) != c.bad {
						t.Errorf("%s with %v: %v", name, c.flags, got.Err)
					}
					entries++
				}
				if (entries == 1) != c.entry {
					t.Errorf("%s with %v, failing %v: %d entries", name, c.flags, c.bad, entries)
				}
				if done++; c.bad {
					failed++
				} else {
					done++
				}
			}
		}
		if a, b := counter.Read(), counter.ReadErr(); a != done || b != failed {
			t.Errorf("%d successes and %d failures are counted, want %d and %d", a, b, done, failed)
		}
	}
}

// next waits for the next entry of a queue.
func next(t *testing.T, cq *fi.CompletionQueue) fi.Completion {
	t.Helper()
	if err := cq.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var c [1]fi.Completion
	if n, _ := cq.Read(c[:]); n == 1 {
		return c[0]
	}
	failed, ok := cq.ReadErr()
	if !ok {
		t.Fatal("an entry is neither a success nor a failure")
	}
	return failed
}

func key(bad bool) uint64 {
	if bad {
		return 99
	}
	return 1
}

// Operations that make no entry never fill the queue up.
func TestSilentOperationsNeedNoReader(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	ep, _, counter := selective(t, f, fi.EndpointAttr{})
	m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	const operations = 1000 // the queue has 64 places
	for posted := 0; posted < operations; {
		switch err := ep.Atomic(&m, 0); {
		case err == nil:
			posted++
		case !errors.Is(err, fi.ErrAgain):
			t.Fatal(err)
		}
	}
	if err := counter.Wait(t.Context(), operations); err != nil {
		t.Fatal(err)
	}
}

// Operations whose success makes no entry take no place in the queue: more of them can be
// in flight than it has places, whatever the way of posting. All fail, which makes an
// entry for each, in order with those of other operations. While as many as the queue has
// places are unread, more are refused, and others are not.
func TestSilentFailuresNeedNoPlace(t *testing.T) {
	const places, inFlight = 4, 100
	client, server, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual, GiveUp: testnet.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = client.CloseAll(), server.CloseAll() }()
	served, _ := server.NewEndpoint(fi.EndpointAttr{})
	av, _ := client.NewAddressVector()
	cq, _ := client.NewCompletionQueue(fi.CQAttr{Size: places})
	ep, _ := client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 128})
	if err := errors.Join(served.Enable(), ep.Bind(av, 0), ep.Bind(cq, fi.BindSelective), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	dest, err := av.Insert(t.Context(), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	post := func(i int, flags fi.OpFlags) error {
		return ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 99, Datatype: atomic.Uint64, Op: atomic.Sum, Context: i}, flags)
	}
	for round := range 3 {
		for i := range inFlight {
			flags := []fi.OpFlags{fi.FlagMore, fi.FlagInject, fi.FlagFence, 0}[i*(round%2)%4]
			if i%(inFlight/places) == 0 {
				flags |= fi.FlagCompletion
			}
			if err := post(i, flags); err != nil {
				t.Fatalf("operation %d, in a queue with %d places: %v", i, places, err)
			}
		}
		if err := post(-1, fi.FlagCompletion); !errors.Is(err, fi.ErrAgain) {
			t.Fatalf("one more that wants an entry: %v, want ErrAgain", err)
		}
		for i := range inFlight {
			for n, err := 0, error(nil); !errors.Is(err, fi.ErrErrorPending); n, err = cq.Read(make([]fi.Completion, 2)) {
				if n > 0 {
					t.Fatal("a success")
				}
				server.Progress()
			}
			if i == 0 { // all have failed, as one frame has them all or they are fenced
				for range 1000 {
					_, _ = client.Progress(), server.Progress()
				}
				if err := post(-1, 0); !errors.Is(err, fi.ErrAgain) {
					t.Fatalf("one more, with %d failures unread: %v, want ErrAgain", inFlight, err)
				}
			}
			c, ok := cq.ReadErr()
			if !ok || c.Context != any(i) || c.Err == nil || c.Endpoint != ep || c.Flags != fi.CompletionAtomic|fi.CompletionWrite {
				t.Fatalf("failure %d: %+v, %t", i, c, ok)
			}
		}
		if c, ok := cq.ReadErr(); ok {
			t.Fatalf("one failure too many: %+v", c)
		}
	}
}

// The defaults of an endpoint can be changed, and are what FlagDefaults stands for.
func TestOpFlags(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	if got := f.ep.OpFlags(); got != 0 {
		t.Errorf("default flags %v, want none", got)
	}
	if err := f.ep.SetOpFlags(fi.FlagInject | fi.FlagTransmitComplete); err != nil {
		t.Fatal(err)
	}
	m := fi.Msg{Buf: make([]byte, 96), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := f.ep.Atomic(&m, fi.FlagDefaults); !errors.Is(err, fi.ErrTooBig) {
		t.Errorf("96 bytes with FlagInject by default: %v, want ErrTooBig", err)
	}
	if err := f.ep.Atomic(&m, 0); err != nil {
		t.Error(err)
	}
	for flags, want := range map[fi.OpFlags]error{fi.FlagMore: fi.ErrBadFlags, fi.FlagFence: fi.ErrBadFlags,
		commitComplete: fi.ErrNotImplemented, fi.FlagDefaults: fi.ErrBadFlags, 1 << 40: fi.ErrBadFlags} {
		if err := f.ep.SetOpFlags(flags); !errors.Is(err, want) {
			t.Errorf("%v by default: %v, want %v", flags, err, want)
		}
		if _, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, OpFlags: flags}); !errors.Is(err, want) {
			t.Errorf("an endpoint with %v by default: %v, want %v", flags, err, want)
		}
	}
}

// Each level of completion is kept, by the strongest one; what would be durable is
// refused.
func TestCompletionLevels(t *testing.T) {
	f := byHand(t)
	for _, flags := range []fi.OpFlags{fi.FlagInjectComplete, fi.FlagTransmitComplete, fi.FlagMatchComplete, fi.FlagDeliveryComplete} {
		before := f.word(1)
		f.add(t, 1, flags)
		f.settle(t, 1)
		if f.word(1) != before+1 {
			t.Errorf("%v: completed before it was applied", flags)
		}
	}
	m := fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := f.ep.Atomic(&m, commitComplete); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("commit_complete: %v, want ErrNotImplemented", err)
	}
}
