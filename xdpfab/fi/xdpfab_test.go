// SPDX-License-Identifier: Apache-2.0

package fi_test

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
	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func TestMain(m *testing.M) {
	testnet.Confine()
	os.Exit(testnet.Run(m))
}

// fixture is a client and a server with a region "r" of 64 KiB under key 1, and
// a read-only one "ro" under key 2.
type fixture struct {
	client, server *xdpfab.Domain
	mem            []byte
	region         *mr.Region
	ep             *fi.Endpoint
	cq             *fi.CompletionQueue
	av             *fi.AddressVector
	dest           fi.Address
}

func setUp(t testing.TB, attr fi.DomainAttr, size int) *fixture {
	t.Helper()
	return setUpBoth(t, attr, fi.DomainAttr{}, size)
}

func setUpBoth(t testing.TB, attr, server fi.DomainAttr, size int) *fixture {
	t.Helper()
	f := fabrictest.SetUp(t, attr, server, size)
	return &fixture{f.Client, f.Server, f.Region.Bytes(), f.Region, f.EP, f.CQ, f.AV, f.Dest}
}

var (
	ctx           = fabrictest.Context
	reduced       = fabrictest.Reduced
	progressModes = fabrictest.Modes
	directModes   = fabrictest.DirectModes
	join          = fabrictest.Join
	guestOn       = fabrictest.GuestOn
	cableOf       = fabrictest.CableOf
)

func TestTypedHandle(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
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
	v, err = xdpfab.Max(c, w, 20)
	check("max", v, 9, err)
	v, err = xdpfab.Min(c, w, 3)
	check("min", v, 20, err)
	yes, err := w.CompareAndSwap(c, 3, 12)
	no, err2 := w.CompareAndSwap(c, 3, 13)
	if !yes || no || err != nil || err2 != nil {
		t.Errorf("%T: compare-and-swap %v %v %v %v", v, yes, no, err, err2)
	}
	if v = 1; v/2 != 0 { // a float
		if _, err := w.Fetch(c, atomic.Band, 1); !errors.Is(err, fi.ErrOpNotSupported) {
			t.Errorf("%T and: %v, want ErrOpNotSupported", v, err)
		}
		return
	}
	v, err = w.Fetch(c, atomic.Band, 10)
	check("and", v, 12, err)
	v, err = w.Fetch(c, atomic.Bor, 3)
	check("or", v, 8, err)
	v, err = w.Fetch(c, atomic.Bxor, 1)
	check("xor", v, 11, err)
	v, err = w.Load(c)
	check("load", v, 10, err)
}

// Many goroutines on one word: the sum is exact, and every value is fetched by
// exactly one of them.
func TestConcurrentCallers(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		const workers = 8
		each := reduced(500, 150)
		seen := make([]bool, workers*each+1)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
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
		if got := binary.LittleEndian.Uint64(f.mem); got != uint64(workers*each) {
			t.Errorf("sum %d, want %d", got, workers*each)
		}
	})
}

// A full queue says so, and everything accepted completes.
func TestQueueFull(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 16)
		one := make([]byte, 8)
		one[0] = 1
		posted, read, full := 0, 0, false
		c := make([]fi.Completion, 4)
		for posted < 1000 || read < posted {
			if posted < 1000 {
				switch err := f.ep.Atomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); {
				case err == nil:
					posted++
					continue
				case errors.Is(err, fi.ErrAgain):
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
	f := setUp(t, fi.DomainAttr{}, 64)
	b8, r8 := make([]byte, 8), make([]byte, 8)
	posting := []struct {
		name string
		err  error
		want error
	}{
		{"zero count", f.ep.Atomic(&fi.Msg{Count: 0, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrCount},
		{"negative count", f.ep.Atomic(&fi.Msg{Buf: b8, Count: -1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrCount},
		{"too many elements", f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1 << 40, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrTooMany},
		{"short operand", f.ep.Atomic(&fi.Msg{Buf: b8[:7], Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrLength},
		{"short result", f.ep.FetchAtomic(&fi.Msg{Buf: b8, Count: 1, Result: r8[:4], Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrLength},
		{"no compare", f.ep.CompareAtomic(&fi.Msg{Buf: b8, Count: 1, Compare: nil, Result: r8, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Cswap}, 0), fi.ErrLength},
		{"bits of a float", f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Double, Op: atomic.Bor}, 0), fi.ErrOpNotSupported},
		{"base read", f.ep.Atomic(&fi.Msg{Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Read}, 0), fi.ErrOpNotSupported},
		{"no such datatype", f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Datatype(77), Op: atomic.Sum}, 0), fi.ErrOpNotSupported},
		{"no such peer", f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1, Dest: 55, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0), fi.ErrUnknownPeer},
		{"too big to inject", f.ep.InjectAtomic(&fi.Msg{Buf: make([]byte, 88), Count: 11, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}), fi.ErrTooBig},
		{"unknown flag", f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 1<<40), fi.ErrBadFlags},
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
		{"wrong key", 77, 0, 1, fi.ErrNoKey},
		{"no right", 2, 0, 1, fi.ErrAccess},
		{"out of bounds", 1, 1 << 16, 1, fi.ErrOutOfBounds},
		{"across the end", 1, 1<<16 - 8, 2, fi.ErrOutOfBounds},
		{"misaligned", 1, 3, 1, fi.ErrMisaligned},
	}
	for _, c := range remote {
		buf := make([]byte, 8*c.count)
		if err := f.ep.Atomic(&fi.Msg{Buf: buf, Count: c.count, Dest: f.dest, Offset: c.addr, Key: c.key, Datatype: atomic.Uint64, Op: atomic.Sum, Context: c.name}, 0); err != nil {
			t.Fatal(err)
		}
		checkFailure(t, f, c.name, fi.ErrNotExecuted, c.want)
	}
	if err := f.region.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.ep.Atomic(&fi.Msg{Buf: b8, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Context: "revoked"}, 0); err != nil {
		t.Fatal(err)
	}
	checkFailure(t, f, "revoked", fi.ErrNotExecuted, fi.ErrNoKey)
}

// checkFailure expects one error completion.
func checkFailure(t *testing.T, f *fixture, name string, certainty, cause error) {
	t.Helper()
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	var c [1]fi.Completion
	if n, err := f.cq.Read(c[:]); n != 0 || !errors.Is(err, fi.ErrErrorPending) {
		t.Fatalf("%s: read %d, %v, want ErrErrorPending", name, n, err)
	}
	e, ok := f.cq.ReadErr()
	if !ok || !errors.Is(e.Err, certainty) || !errors.Is(e.Err, cause) || e.Context != any(name) {
		t.Errorf("%s: %v (context %v), want %v and %v", name, e.Err, e.Context, certainty, cause)
	}
}

func TestPeers(t *testing.T) {
	impatient := setUp(t, fi.DomainAttr{GiveUp: 200 * time.Millisecond}, 64)
	c := ctx(t)
	if _, err := impatient.client.Dial(c, fi.Nobody()); !errors.Is(err, fi.ErrPeerSilent) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("silent peer: %v", err)
	}
	f := setUp(t, fi.DomainAttr{}, 64)
	if _, err := f.client.Dial(c, f.server.Name(0)+"/7"); !errors.Is(err, fi.ErrRefused) {
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
	if _, err := p.Lookup(c, "absent"); !errors.Is(err, fi.ErrNoRegion) {
		t.Errorf("unknown region: %v", err)
	}
	if _, err := xdpfab.Word[uint64](c, p, "r", 1<<13); !errors.Is(err, fi.ErrOutOfBounds) {
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
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
	ended, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := w.Add(ended, 1); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if n, err := w.Load(ctx(t)); err != nil || n != 0 {
		t.Errorf("%d, %v, want nothing added", n, err)
	}
	_ = f.server.SetFaults(fi.Faults{Loss: 1})
	short, stop := context.WithCancel(ctx(t))
	defer stop()
	done := make(chan error)
	go func() {
		_, err := w.Add(short, 1)
		done <- err
	}()
	testnet.Eventually(t, "the peer adds", func() bool { return binary.LittleEndian.Uint64(f.mem) == 1 })
	stop()
	if err := <-done; !errors.Is(err, fi.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("under way when the context ended: %v", err)
	}
	if _, err := p.Lookup(short, "r"); !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("a question: %v", err)
	}
}

func TestCounters(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		reads, err := f.client.NewCounter()
		if err != nil {
			t.Fatal(err)
		}
		writes, _ := f.client.NewCounter()
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(reads, fi.BindRead), ep.Bind(writes, fi.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		one, res := make([]byte, 8), make([]byte, 8)
		one[0] = 1
		for range 10 {
			if err := ep.InjectAtomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}); err != nil {
				t.Fatal(err)
			}
		}
		if err := ep.FetchAtomic(&fi.Msg{Buf: one, Count: 1, Result: res, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if err := reads.Wait(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		if w, r := writes.Read(), binary.LittleEndian.Uint64(res); w != 10 || r != 10 {
			t.Errorf("%d writes counted, %d fetched after them: want 10 and 10", w, r)
		}
		if err := ep.Atomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 99, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if err := writes.WaitFrom(ctx(t), 11, 0); !errors.Is(err, fi.ErrErrorPending) || writes.ReadErr() != 1 {
			t.Errorf("wait with a failure: %v, %d failures", err, writes.ReadErr())
		}
	})
}

// Closing things in the wrong order is refused, closing them twice is not.
func TestClosing(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	if err := f.cq.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("completion queue in use: %v", err)
	}
	if err := f.av.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("address vector in use: %v", err)
	}
	if err := errors.Join(f.ep.Close(), f.ep.Close(), f.cq.Close(), f.av.Close()); err != nil {
		t.Error(err)
	}
	if err := f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("post on a closed endpoint: %v", err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.client.CloseAll(), f.client.CloseAll()); err != nil {
		t.Error(err)
	}
	if _, err := p.Lookup(ctx(t), "r"); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("operation on a closed domain: %v", err)
	}
	if _, err := f.client.NewCounter(); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("counter on a closed domain: %v", err)
	}
}

// Shutdown lets outstanding operations complete.
func TestShutdownDrains(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 256)
		one := make([]byte, 8)
		one[0] = 1
		for range 200 {
			if err := f.ep.Atomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.ep.Shutdown(ctx(t)); err != nil {
			t.Fatal(err)
		}
		c := make([]fi.Completion, 256)
		if n, err := f.cq.Read(c); n != 200 || err != nil {
			t.Errorf("%d good completions, %v, want 200", n, err)
		}
		if err := f.ep.Atomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("post after shutdown: %v", err)
		}
	})
}

// A blocked caller is released when the domain closes.
func TestCloseReleasesWaiters(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		errs := make(chan error)
		go func() {
			_, err := f.client.Dial(ctx(t), fi.Nobody())
			errs <- err
		}()
		testnet.Blocked(t, 1, "xdpfab.(*Domain).Dial")
		if err := f.client.CloseAll(); err != nil {
			t.Error(err)
		}
		if err := <-errs; !errors.Is(err, fi.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

func TestAttributes(t *testing.T) {
	bad := []fi.DomainAttr{
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

// The blocking calls of a typed handle allocate nothing, settled or not.
func TestWordDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("allocations mean nothing under the race detector")
	}
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	c := context.Background()
	p, err := f.client.Dial(c, f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
	for range 3000 {
		if _, err := w.Add(c, 1); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func(){
		"Add":   func() { _, _ = w.Add(c, 1) },
		"Load":  func() { _, _ = w.Load(c) },
		"Store": func() { _ = w.Store(c, 1) },
		"CompareAndSwap": func() {
			swapped, err := w.CompareAndSwap(c, 1, 1)
			_, _ = xdpfab.Settle(c, swapped, err)
		},
		"CompareAndExchange": func() { _, _, _ = w.CompareAndExchange(c, 1, 1) },
		"a settled Add": func() {
			n, err := w.Add(c, 1)
			_, _ = xdpfab.Settle(c, n, err)
		},
	} {
		if n := testing.AllocsPerRun(2000, call); n >= 1 {
			t.Errorf("%v allocations per %s, want 0", n, name)
		}
	}
}

// Nor does waiting on a completion queue.
func TestCQWaitDoesNotAllocate(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	one, c := make([]byte, 8), make([]fi.Completion, 1)
	background := context.Background()
	round := func() {
		if err := f.ep.Atomic(&fi.Msg{Buf: one, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
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
	for _, m := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		b.Run(fmt.Sprintf("progress=%d", m), func(b *testing.B) {
			f := setUp(b, fi.DomainAttr{Progress: m}, 64)
			p, err := f.client.Dial(ctx(b), f.server.Name(0))
			if err != nil {
				b.Fatal(err)
			}
			w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Add(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
