// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"sync"
	syncatomic "sync/atomic"
	"testing"
	"unsafe"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Selective completion and the like are refused rather than ignored, and leave
// nothing bound.
func TestBindRefusals(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	av, _ := f.client.NewAddressVector()
	cq, _ := f.client.NewCompletionQueue(fi.CQAttr{})
	counter, _ := f.client.NewCounter()
	foreign, _ := f.server.NewCompletionQueue(fi.CQAttr{})
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		b     fi.Bindable
		flags fi.BindFlags
		want  error
	}{
		{"selective completion", cq, 1 << 29, fi.ErrBadFlags},
		{"transmit only", cq, fi.BindWrite, fi.ErrBadFlags},
		{"vector with flags", av, fi.BindRead, fi.ErrBadFlags},
		{"counter of nothing", counter, 0, fi.ErrBadFlags},
		{"counter of remote operations", counter, fi.BindRead | 1<<12, fi.ErrBadFlags},
		{"nothing", nil, 0, fi.ErrNotImplemented},
		{"another domain's queue", foreign, 0, fi.ErrForeign},
	} {
		if err := ep.Bind(c.b, c.flags); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := errors.Join(av.Close(), cq.Close(), counter.Close(), foreign.Close()); err != nil {
		t.Errorf("bound after all: %v", err)
	}
}

// A counter can be set and increased by hand, and that ends waits.
func TestCounterByHand(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	c, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, _ := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(c, fi.BindWrite|fi.BindRead), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	check := func(value, errs uint64) {
		t.Helper()
		if c.Read() != value || c.ReadErr() != errs {
			t.Errorf("%d and %d failures, want %d and %d", c.Read(), c.ReadErr(), value, errs)
		}
	}
	check(0, 0)
	c.Set(10)
	c.Add(5)
	c.SetErr(3)
	c.AddErr(4)
	check(15, 7)
	c.Set(2)
	c.SetErr(1)
	check(2, 1)
	if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(ctx(t), 3); err != nil { // operations count on from there
		t.Error(err)
	}
	check(3, 1)

	errs := make(chan error)
	wait := func(threshold uint64) { errs <- c.Wait(ctx(t), threshold) }
	for name, end := range map[string]func(){"Set": func() { c.Set(100) }, "Add": func() { c.Add(200) }} {
		c.Set(0)
		go wait(50)
		end()
		if err := <-errs; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A wait counts the failures from its beginning, so each must come after that.
	for name, end := range map[string]func(){"SetErr": func() { c.SetErr(c.ReadErr() + 1) }, "AddErr": func() { c.AddErr(1) }} {
		c.Set(0)
		go wait(50)
		for err = nil; err == nil; {
			end()
			select {
			case err = <-errs:
			default:
			}
		}
		if !errors.Is(err, fi.ErrErrorPending) {
			t.Errorf("%s: %v, want ErrErrorPending", name, err)
		}
	}
}

// Lookup returns the address that was inserted, in one form.
func TestAddressVectorLookup(t *testing.T) {
	fi.NotOverSockets(t, "it names peers by Ethernet addresses")
	f := setUp(t, fi.DomainAttr{}, 64)
	for addr, want := range map[string]string{
		"02:00:00:00:00:77":   "02:00:00:00:00:77",
		"02:00:00:00:00:78/0": "02:00:00:00:00:78",
		"02:00:00:00:00:7A/9": "02:00:00:00:00:7a/9",
	} {
		a, err := f.av.Insert(ctx(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.av.Lookup(a)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", addr, got, err, want)
		}
		again, err := f.av.Insert(ctx(t), got)
		if name, _ := f.av.Lookup(again); err != nil || name != got || again == a {
			t.Errorf("%q inserted again: %q, %v", got, name, err)
		}
		if err := f.av.Remove(a); err != nil {
			t.Fatal(err)
		}
		if _, err := f.av.Lookup(a); !errors.Is(err, fi.ErrUnknownPeer) {
			t.Errorf("removed: %v, want ErrUnknownPeer", err)
		}
	}
	if _, err := f.av.Lookup(1000); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("never inserted: %v, want ErrUnknownPeer", err)
	}
}

// words views a region as the words that the node's own code works on.
func words[T uint32 | uint64](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

// Operations of peers are atomic against the owner's sync/atomic: no addition is lost,
// whether a peer or the owner makes it, and in whichever form.
func TestRemoteAgainstLocalAtomics(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	c := context.Background()
	p, err := f.client.Dial(c, f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 2000
	long, short := &words[uint64](f.mem)[0], &words[uint32](f.mem)[2]
	var wg sync.WaitGroup
	wg.Go(func() {
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		for range rounds {
			if _, err := w.Add(c, 1); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		v, err := xdpfab.Vector[uint32](c, p, "r")
		for range rounds / 10 {
			if err = errors.Join(err, v.Add(c, []uint64{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, nil)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() { // the same word by compare-and-swap
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		for range rounds / 10 {
			for {
				old, err := w.Load(c)
				if err != nil {
					t.Error(err)
					return
				}
				if done, err := w.CompareAndSwap(c, old, old+1); err != nil {
					t.Error(err)
					return
				} else if done {
					break
				}
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 50 * rounds {
				syncatomic.AddUint64(long, 1)
				syncatomic.AddUint32(short, 1)
			}
		})
	}
	wg.Wait()
	if want := uint64(rounds + rounds/10 + 100*rounds); syncatomic.LoadUint64(long) != want {
		t.Errorf("%d, want %d", *long, want)
	}
	if want := uint32(rounds + 100*rounds); syncatomic.LoadUint32(short) != want {
		t.Errorf("%d, want %d", *short, want)
	}
}

// A lock that a peer and the owner take in turn excludes them from one another: the
// owner swaps with sync/atomic, the peer with CompareAndSwap, and what the lock
// guards is changed by plain reads and writes.
func TestLockSharedWithOwner(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	c := context.Background()
	p, err := f.client.Dial(c, f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 300
	lock, guarded := &words[uint64](f.mem)[0], &words[uint64](f.mem)[1]
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			for !syncatomic.CompareAndSwapUint64(lock, 0, 1) {
			}
			v := syncatomic.LoadUint64(guarded)
			syncatomic.StoreUint64(guarded, v+1)
			syncatomic.StoreUint64(lock, 0)
		}
	})
	wg.Go(func() {
		lock, guarded := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0), xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 1)
		once := func() error {
			for {
				if got, err := lock.CompareAndSwap(c, 0, 2); err != nil {
					return err
				} else if got {
					break
				}
			}
			v, err := guarded.Load(c)
			return errors.Join(err, guarded.Store(c, v+1), lock.Store(c, 0))
		}
		for range rounds {
			if err := once(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Wait()
	if v := syncatomic.LoadUint64(guarded); v != 2*rounds {
		t.Errorf("%d changes survived of %d", v, 2*rounds)
	}
}

// A part of a memory registered with virtual addresses begins where it lies.
func TestVirtualRegionOfAPart(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	m, err := mr.Alloc(8192, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	whole, err := f.server.Register(m, mr.Options{Virtual: true, Access: mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	part, err := f.server.Register(m, mr.Options{Name: "part", Virtual: true, Offset: 4096, Length: 64, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	if part.Base() != whole.Base()+4096 {
		t.Fatalf("base %#x, want %#x + 4096", part.Base(), whole.Base())
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "part", 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store(ctx(t), 1); err != nil || m.Bytes()[4096+56] != 1 {
		t.Errorf("store: %v", err)
	}
	for _, addr := range []uint64{part.Base() - 8, part.Base() + 64} {
		if err := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: part.Key(), Base: addr}, 0).Store(ctx(t), 1); !errors.Is(err, fi.ErrOutOfBounds) {
			t.Errorf("at %#x: %v, want ErrOutOfBounds", addr, err)
		}
	}
}

// An endpoint that can post is not enabled unless something tells of failures, in both
// directions.
func TestEnableWantsCompletions(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	counter, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		bind func(*fi.Endpoint) error
		want error
	}{
		{"nothing", func(*fi.Endpoint) error { return nil }, fi.ErrNoCQ},
		{"a counter of reads", func(ep *fi.Endpoint) error { return ep.Bind(counter, fi.BindRead) }, fi.ErrNoCQ},
		{"a counter of writes", func(ep *fi.Endpoint) error { return ep.Bind(counter, fi.BindWrite) }, fi.ErrNoCQ},
		{"a counter of both", func(ep *fi.Endpoint) error { return ep.Bind(counter, fi.BindRead|fi.BindWrite) }, nil},
		{"a queue", func(ep *fi.Endpoint) error { return ep.Bind(f.cq, 0) }, nil},
	} {
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(err, ep.Bind(f.av, 0), c.bind(ep)); err != nil {
			t.Fatal(err)
		}
		if err := ep.Enable(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
