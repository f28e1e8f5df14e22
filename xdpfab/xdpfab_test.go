// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// fixture is a client and a server with a region "r" of 64 KiB under key 1, and
// a read-only one "ro" under key 2.
type fixture struct {
	client, server *xdpfab.Domain
	mem            []byte
	region         *mr.Region
	ep             *xdpfab.Endpoint
	cq             *xdpfab.CompletionQueue
	av             *xdpfab.AddressVector
	dest           xdpfab.Address
}

func setUp(t testing.TB, attr xdpfab.DomainAttr, size int) *fixture {
	t.Helper()
	return setUpBoth(t, attr, xdpfab.DomainAttr{}, size)
}

func setUpBoth(t testing.TB, attr, server xdpfab.DomainAttr, size int) *fixture {
	t.Helper()
	f := &fixture{}
	var err error
	must := func(e error) {
		t.Helper()
		if e != nil {
			t.Fatal(e)
		}
	}
	f.client, f.server, err = join(t, attr, server)
	must(err)
	t.Cleanup(func() {
		must(f.client.CloseAll())
		must(f.server.CloseAll())
	})
	register := func(key uint64, o mr.Options) *mr.Region {
		m, err := mr.Memfd("test", 1<<16) // which a host can map too
		must(err)
		t.Cleanup(func() { _ = m.Close() })
		o.Key = &key
		r, err := f.server.Register(m, o)
		must(err)
		return r
	}
	f.region = register(1, mr.Options{Name: "r", Access: mr.RemoteRead | mr.RemoteWrite})
	f.mem = f.region.Bytes()
	register(2, mr.Options{Name: "ro", Access: mr.RemoteRead})
	sep, err := f.server.NewEndpoint(xdpfab.EndpointAttr{})
	must(err)
	must(sep.Enable())
	f.av, err = f.client.NewAddressVector()
	must(err)
	f.cq, err = f.client.NewCompletionQueue(xdpfab.CQAttr{Size: size})
	must(err)
	f.ep, err = f.client.NewEndpoint(xdpfab.EndpointAttr{Number: 9, Size: size})
	must(err)
	must(errors.Join(f.ep.Bind(f.av, 0), f.ep.Bind(f.cq, 0), f.ep.Enable()))
	f.dest, err = f.av.Insert(ctx(t), f.server.Name(0))
	must(err)
	return f
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	t.Cleanup(cancel)
	return c
}

// reduced returns how much a test does: with -short, for the race detector and virtual
// machines, which slow it down tenfold, less.
func reduced(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func progressModes(t *testing.T, f func(t *testing.T, a xdpfab.DomainAttr)) {
	directModes(t, f)
	t.Run("guest", func(t *testing.T) { f(t, xdpfab.DomainAttr{Attach: xdpfab.AttachAlways}) })
	t.Run("manual guest", func(t *testing.T) {
		f(t, xdpfab.DomainAttr{Attach: xdpfab.AttachAlways, Progress: xdpfab.ProgressManual})
	})
}

// directModes is progressModes for what a guest cannot do.
func directModes(t *testing.T, f func(t *testing.T, a xdpfab.DomainAttr)) {
	t.Run("auto", func(t *testing.T) { f(t, xdpfab.DomainAttr{}) })
	t.Run("manual", func(t *testing.T) { f(t, xdpfab.DomainAttr{Progress: xdpfab.ProgressManual}) })
}

// join is xdpfab.Pipe, of which an end is a guest of the one with the cable if its
// attributes say AttachAlways.
func join(t testing.TB, attr ...xdpfab.DomainAttr) (a, b *xdpfab.Domain, err error) {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	if len(attr) == 0 {
		attr = make([]xdpfab.DomainAttr, 1)
	}
	if len(attr) == 1 {
		attr = append(attr, attr[0])
		attr[1].Attach = xdpfab.AttachAuto
	}
	ends := [2]xdpfab.DomainAttr{attr[0], attr[1]}
	for i := range ends {
		if ends[i].Attach == xdpfab.AttachAlways {
			ends[i].Progress = xdpfab.ProgressAuto // a daemon's
		}
	}
	a, b, err = xdpfab.Pipe(ends[:]...)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range []**xdpfab.Domain{&a, &b} {
		if attr[i].Attach == xdpfab.AttachAlways {
			*d = guestOn(t, *d, attr[i])
		}
	}
	return a, b, nil
}

// guestOn returns a guest of a domain, which ends after it.
func guestOn(t testing.TB, cable *xdpfab.Domain, attr xdpfab.DomainAttr) *xdpfab.Domain {
	t.Cleanup(func() {
		if err := cable.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	guest := GuestOf(t, cable, attr)
	hosts.Store(guest, cable)
	t.Cleanup(func() { hosts.Delete(guest) })
	return guest
}

// hosts has the domain with the cable of each guest that join has made.
var hosts sync.Map

// cableOf returns the domain that has the cable of d: its host, or d itself.
func cableOf(d *xdpfab.Domain) *xdpfab.Domain {
	if host, is := hosts.Load(d); is {
		return host.(*xdpfab.Domain)
	}
	return d
}

func TestTypedHandle(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		testWord[int8](t, p)
		testWord[uint8](t, p)
		testWord[int16](t, p)
		testWord[uint16](t, p)
		testWord[int32](t, p)
		testWord[uint32](t, p)
		testWord[int64](t, p)
		testWord[uint64](t, p)
		testWord[int](t, p)
		testWord[uint](t, p)
		testWord[uintptr](t, p)
		testWord[float32](t, p)
		testWord[float64](t, p)
		type celsius float32
		testWord[celsius](t, p)
	})
}

func testWord[T xdpfab.Number](t *testing.T, p *xdpfab.Peer) {
	t.Helper()
	c := ctx(t)
	w, err := xdpfab.Word[T](c, p, "r", 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store(c, 5); err != nil {
		t.Fatal(err)
	}
	check := func(what string, got, want T, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%T %s: %v, %v; want %v", want, what, got, err, want)
		}
	}
	v, err := w.Load(c)
	check("load", v, 5, err)
	v, err = w.Add(c, 2)
	check("add", v, 7, err)
	v, err = w.Swap(c, 9)
	check("swap", v, 7, err)
	v, err = w.Max(c, 20)
	check("max", v, 9, err)
	v, err = w.Min(c, 3)
	check("min", v, 20, err)
	yes, err := w.CompareAndSwap(c, 3, 12)
	no, err2 := w.CompareAndSwap(c, 3, 13)
	if !yes || no || err != nil || err2 != nil {
		t.Errorf("%T: compare-and-swap %v %v %v %v", v, yes, no, err, err2)
	}
	if v = 1; v/2 != 0 { // a float
		if _, err := w.And(c, 1); !errors.Is(err, xdpfab.ErrOpNotSupported) {
			t.Errorf("%T and: %v, want ErrOpNotSupported", v, err)
		}
		return
	}
	v, err = w.And(c, 10)
	check("and", v, 12, err)
	v, err = w.Or(c, 3)
	check("or", v, 8, err)
	v, err = w.Xor(c, 1)
	check("xor", v, 11, err)
	v, err = w.Load(c)
	check("load", v, 10, err)
}

// Many goroutines on one word: the sum is exact, and every value is fetched by
// exactly one of them.
func TestConcurrentCallers(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		const workers, each = 8, 500
		seen := make([]bool, workers*each+1)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
				for range each {
					n, err := w.Add(ctx(t), 1)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if seen[n] {
						t.Errorf("%d fetched twice", n)
					}
					seen[n] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if got := binary.LittleEndian.Uint64(f.mem); got != workers*each {
			t.Errorf("sum %d, want %d", got, workers*each)
		}
	})
}

// A full queue says so, and everything accepted completes.
func TestQueueFull(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 16)
		one := make([]byte, 8)
		one[0] = 1
		posted, read, full := 0, 0, false
		c := make([]xdpfab.Completion, 4)
		for posted < 1000 || read < posted {
			if posted < 1000 {
				switch err := f.ep.Atomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); {
				case err == nil:
					posted++
					continue
				case errors.Is(err, xdpfab.ErrAgain):
					full = true
				default:
					t.Fatal(err)
				}
			}
			n, err := f.cq.Read(c)
			if err != nil {
				t.Fatal(err)
			}
			read += n
		}
		if got := binary.LittleEndian.Uint64(f.mem); got != 1000 || !full {
			t.Errorf("sum %d, want 1000; queue was full: %v", got, full)
		}
	})
}

func TestRefusals(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	b8, r8 := make([]byte, 8), make([]byte, 8)
	posting := []struct {
		name string
		err  error
		want error
	}{
		{"zero count", f.ep.Atomic(&xdpfab.Msg{Count: 0, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrCount},
		{"negative count", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: -1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrCount},
		{"too many elements", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1 << 40, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrTooMany},
		{"short operand", f.ep.Atomic(&xdpfab.Msg{Buf: b8[:7], Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrLength},
		{"short result", f.ep.FetchAtomic(&xdpfab.Msg{Buf: b8, Count: 1, Result: r8[:4], Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrLength},
		{"no compare", f.ep.CompareAtomic(&xdpfab.Msg{Buf: b8, Count: 1, Compare: nil, Result: r8, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Cswap}, 0), xdpfab.ErrLength},
		{"bits of a float", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Double, Op: atomic.Bor}, 0), xdpfab.ErrOpNotSupported},
		{"base read", f.ep.Atomic(&xdpfab.Msg{Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Read}, 0), xdpfab.ErrOpNotSupported},
		{"no such datatype", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Datatype(77), Op: atomic.Sum}, 0), xdpfab.ErrOpNotSupported},
		{"no such peer", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1, Dest: 55, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), xdpfab.ErrUnknownPeer},
		{"too big to inject", f.ep.InjectAtomic(&xdpfab.Msg{Buf: make([]byte, 88), Count: 11, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}), xdpfab.ErrTooBig},
		{"unknown flag", f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 1<<30), xdpfab.ErrBadFlags},
	}
	for _, c := range posting {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
	remote := []struct {
		name      string
		key, addr uint64
		count     int
		want      error
	}{
		{"wrong key", 77, 0, 1, xdpfab.ErrNoKey},
		{"no right", 2, 0, 1, xdpfab.ErrAccess},
		{"out of bounds", 1, 1 << 16, 1, xdpfab.ErrOutOfBounds},
		{"across the end", 1, 1<<16 - 8, 2, xdpfab.ErrOutOfBounds},
		{"misaligned", 1, 3, 1, xdpfab.ErrMisaligned},
	}
	for _, c := range remote {
		buf := make([]byte, 8*c.count)
		if err := f.ep.Atomic(&xdpfab.Msg{Buf: buf, Count: c.count, Dest: f.dest, Offset: c.addr, Key: c.key, Datatype: atomic.Uint64, Op: atomic.Sum, Context: c.name}, 0); err != nil {
			t.Fatal(err)
		}
		checkFailure(t, f, c.name, xdpfab.ErrNotExecuted, c.want)
	}
	if err := f.region.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.ep.Atomic(&xdpfab.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Context: "revoked"}, 0); err != nil {
		t.Fatal(err)
	}
	checkFailure(t, f, "revoked", xdpfab.ErrNotExecuted, xdpfab.ErrNoKey)
}

// checkFailure expects one error completion.
func checkFailure(t *testing.T, f *fixture, name string, certainty, cause error) {
	t.Helper()
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	var c [1]xdpfab.Completion
	if n, err := f.cq.Read(c[:]); n != 0 || !errors.Is(err, xdpfab.ErrErrorPending) {
		t.Fatalf("%s: read %d, %v, want ErrErrorPending", name, n, err)
	}
	e, ok := f.cq.ReadErr()
	if !ok || !errors.Is(e.Err, certainty) || !errors.Is(e.Err, cause) || e.Context != any(name) {
		t.Errorf("%s: %v (context %v), want %v and %v", name, e.Err, e.Context, certainty, cause)
	}
}

func TestPeers(t *testing.T) {
	impatient := setUp(t, xdpfab.DomainAttr{GiveUp: 200 * time.Millisecond}, 64)
	c := ctx(t)
	if _, err := impatient.client.Dial(c, xdpfab.Nobody()); !errors.Is(err, xdpfab.ErrPeerSilent) || !errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("silent peer: %v", err)
	}
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	if _, err := f.client.Dial(c, f.server.Name(0)+"/7"); !errors.Is(err, xdpfab.ErrRefused) {
		t.Errorf("no such endpoint: %v", err)
	}
	for _, bad := range []string{"", "nonsense", "02:00:00:00:00", "10.0.0.1"} {
		if _, err := f.client.Dial(c, bad); err == nil {
			t.Errorf("dial %q succeeded", bad)
		}
	}
	p, err := f.client.Dial(c, f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Lookup(c, "absent"); !errors.Is(err, xdpfab.ErrNoRegion) {
		t.Errorf("unknown region: %v", err)
	}
	if _, err := xdpfab.Word[uint64](c, p, "r", 1<<13); !errors.Is(err, xdpfab.ErrOutOfBounds) {
		t.Errorf("word beyond the end: %v", err)
	}
	list, err := p.Regions(c)
	if err != nil || len(list) != 2 || list[0].Name != "r" || list[1].Name != "ro" || list[0].Size != 1<<16 ||
		list[0].Key != 1 || list[1].Access != mr.RemoteRead {
		t.Errorf("catalogue: %+v, %v", list, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Lookup(c, "r"); err == nil {
		t.Error("lookup on a closed peer succeeded")
	}
}

// A context that ends leaves the outcome unknown, and the caller's buffers alone.
func TestContext(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
	ended, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := w.Add(ended, 1); !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if n, err := w.Load(ctx(t)); err != nil || n != 0 {
		t.Errorf("%d, %v, want nothing added", n, err)
	}
	_ = f.server.SetFaults(xdpfab.Faults{Loss: 1})
	short, stop := context.WithCancel(ctx(t))
	defer stop()
	done := make(chan error)
	go func() {
		_, err := w.Add(short, 1)
		done <- err
	}()
	testnet.Eventually(t, "the peer adds", func() bool { return binary.LittleEndian.Uint64(f.mem) == 1 })
	stop()
	if err := <-done; !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("under way when the context ended: %v", err)
	}
	if _, err := p.Lookup(short, "r"); !errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("a question: %v", err)
	}
}

func TestCounters(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		reads, err := f.client.NewCounter()
		if err != nil {
			t.Fatal(err)
		}
		writes, _ := f.client.NewCounter()
		ep, err := f.client.NewEndpoint(xdpfab.EndpointAttr{Number: xdpfab.AnyNumber})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(reads, xdpfab.BindRead), ep.Bind(writes, xdpfab.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		one, res := make([]byte, 8), make([]byte, 8)
		one[0] = 1
		for range 10 {
			if err := ep.InjectAtomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}); err != nil {
				t.Fatal(err)
			}
		}
		if err := ep.FetchAtomic(&xdpfab.Msg{Buf: one, Count: 1, Result: res, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if err := reads.Wait(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		if w, r := writes.Read(), binary.LittleEndian.Uint64(res); w != 10 || r != 10 {
			t.Errorf("%d writes counted, %d fetched after them: want 10 and 10", w, r)
		}
		if err := ep.Atomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 99, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if err := writes.WaitFrom(ctx(t), 11, 0); !errors.Is(err, xdpfab.ErrErrorPending) || writes.ReadErr() != 1 {
			t.Errorf("wait with a failure: %v, %d failures", err, writes.ReadErr())
		}
	})
}

// Closing things in the wrong order is refused, closing them twice is not.
func TestClosing(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	if err := f.cq.Close(); !errors.Is(err, xdpfab.ErrBusy) {
		t.Errorf("completion queue in use: %v", err)
	}
	if err := f.av.Close(); !errors.Is(err, xdpfab.ErrBusy) {
		t.Errorf("address vector in use: %v", err)
	}
	if err := errors.Join(f.ep.Close(), f.ep.Close(), f.cq.Close(), f.av.Close()); err != nil {
		t.Error(err)
	}
	if err := f.ep.Atomic(&xdpfab.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("post on a closed endpoint: %v", err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.client.CloseAll(), f.client.CloseAll()); err != nil {
		t.Error(err)
	}
	if _, err := p.Lookup(ctx(t), "r"); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("operation on a closed domain: %v", err)
	}
	if _, err := f.client.NewCounter(); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("counter on a closed domain: %v", err)
	}
}

// Shutdown lets outstanding operations complete.
func TestShutdownDrains(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 256)
		one := make([]byte, 8)
		one[0] = 1
		for range 200 {
			if err := f.ep.Atomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.ep.Shutdown(ctx(t)); err != nil {
			t.Fatal(err)
		}
		c := make([]xdpfab.Completion, 256)
		if n, err := f.cq.Read(c); n != 200 || err != nil {
			t.Errorf("%d good completions, %v, want 200", n, err)
		}
		if err := f.ep.Atomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); !errors.Is(err, xdpfab.ErrClosed) {
			t.Errorf("post after shutdown: %v", err)
		}
	})
}

// A blocked caller is released when the domain closes.
func TestCloseReleasesWaiters(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		errs := make(chan error)
		go func() {
			_, err := f.client.Dial(ctx(t), xdpfab.Nobody())
			errs <- err
		}()
		testnet.Blocked(t, 1, "xdpfab.(*Domain).Dial")
		if err := f.client.CloseAll(); err != nil {
			t.Error(err)
		}
		if err := <-errs; !errors.Is(err, xdpfab.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

func TestAttributes(t *testing.T) {
	bad := []xdpfab.DomainAttr{
		{Progress: 9}, {Queues: -1}, {Window: 65}, {Window: -1}, {Copy: 9}, {GiveUp: -1}, {IdleRetire: time.Second},
		{Cores: []int{-1}}, {Cores: []int{1000}},
	}
	for _, a := range bad {
		if d, e, err := xdpfab.Pipe(a); err == nil {
			t.Errorf("%+v accepted", a)
			_ = errors.Join(d.CloseAll(), e.CloseAll())
		}
	}
}

// raceDetector is set by race_on_test.go.
var raceDetector bool

// The blocking call of a typed handle allocates nothing.
func TestWordDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("allocations mean nothing under the race detector")
	}
	f := setUp(t, xdpfab.DomainAttr{Progress: xdpfab.ProgressManual}, 64)
	c := context.Background()
	p, err := f.client.Dial(c, f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
	for range 3000 {
		if _, err := w.Add(c, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(2000, func() { _, _ = w.Add(c, 1) }); n >= 1 {
		t.Errorf("%v allocations per Add, want 0", n)
	}
}

// Nor does waiting on a completion queue.
func TestCQWaitDoesNotAllocate(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{Progress: xdpfab.ProgressManual}, 64)
	one, c := make([]byte, 8), make([]xdpfab.Completion, 1)
	background := context.Background()
	round := func() {
		if err := f.ep.Atomic(&xdpfab.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.cq.Wait(background, 1); err != nil {
			t.Fatal(err)
		}
		if n, err := f.cq.Read(c); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	for range 2000 {
		round()
	}
	if n := testing.AllocsPerRun(2000, round); n >= 1 {
		t.Errorf("%v allocations per wait, want 0", n)
	}
}

func BenchmarkWordAdd(b *testing.B) {
	for _, m := range []xdpfab.ProgressMode{xdpfab.ProgressAuto, xdpfab.ProgressManual} {
		b.Run(fmt.Sprintf("progress=%d", m), func(b *testing.B) {
			f := setUp(b, xdpfab.DomainAttr{Progress: m}, 64)
			p, err := f.client.Dial(ctx(b), f.server.Name(0))
			if err != nil {
				b.Fatal(err)
			}
			w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Add(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
