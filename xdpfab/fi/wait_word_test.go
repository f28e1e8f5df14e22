// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// until is a wait for the i-th word of eight bytes.
func until(op atomic.Op, i, comparand uint64) *fi.Msg {
	return &fi.Msg{Datatype: atomic.Uint64, Op: op, Offset: 8 * i, Compare: binary.LittleEndian.AppendUint64(nil, comparand),
		Result: make([]byte, 8)}
}

func resultOf(m *fi.Msg) uint64 { return binary.LittleEndian.Uint64(m.Result) }

// waitingModes are progressModes, and that of a caller that makes no two calls at a time.
func waitingModes(t *testing.T, f func(t *testing.T, a fi.DomainAttr)) {
	progressModes(t, f)
	t.Run("alone", func(t *testing.T) {
		f(t, fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain})
	})
}

// The owner of a word waits until a peer has made it what it waits for, whatever the
// peer does to it, and by each comparison.
func TestWaitWord(t *testing.T) {
	waitingModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		testWaitWord(t, f.client, f.server, f.region, 1)
	})
}

func testWaitWord(t *testing.T, client, server *xdpfab.Domain, region *mr.Region, key uint64) {
	t.Helper()
	steps, turn := []struct {
		op        atomic.Op
		comparand uint64
		do        func(ctx context.Context, p *xdpfab.Peer, w xdpfab.Remote[uint64]) error
		want      uint64
	}{
		{atomic.Cswap, 0, nil, 0}, // over at once
		{atomic.CswapNE, 0, adds(3), 3},
		{atomic.Cswap, 10, adds(7), 10},
		{atomic.CswapLE, 12, adds(5), 15}, // 12 <= word
		{atomic.CswapLT, 15, adds(1), 16}, // 15 < word
		{atomic.CswapGE, 8, func(ctx context.Context, _ *xdpfab.Peer, w xdpfab.Remote[uint64]) error { return w.Store(ctx, 8) }, 8},
		{atomic.CswapGT, 8, func(ctx context.Context, _ *xdpfab.Peer, w xdpfab.Remote[uint64]) error {
			_, err := w.CompareAndSwap(ctx, 8, 5)
			return err
		}, 5},
		{atomic.Cswap, 1 << 40, func(ctx context.Context, p *xdpfab.Peer, _ xdpfab.Remote[uint64]) error {
			return p.Write(ctx, fi.RemoteRegion{Key: key}, 24, binary.LittleEndian.AppendUint64(nil, 1<<40))
		}, 1 << 40},
		{atomic.Cswap, 77, func(ctx context.Context, p *xdpfab.Peer, _ xdpfab.Remote[uint64]) error {
			v := xdpfab.VectorAt[uint64](p, fi.RemoteRegion{Key: key, Size: 4096})
			return v.StoreRange(ctx, 0, []uint64{9, 9, 9, 77, 9})
		}, 77},
	}, make(chan int)
	var peer sync.WaitGroup
	peer.Go(func() { // by turns, so that a caller alone can make progress for both
		p, err := client.Dial(ctx(t), server.Name(0))
		if err != nil {
			t.Error(err)
			return
		}
		w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: key}, 3)
		for i := range turn {
			if do := steps[i].do; do != nil {
				if err := do(ctx(t), p, w); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i, s := range steps {
		for sent := false; !sent; server.Progress() {
			select {
			case turn <- i:
				sent = true
			default:
			}
		}
		m := until(s.op, 3, s.comparand)
		if err := server.WaitWord(ctx(t), region, m); err != nil || resultOf(m) != s.want {
			t.Errorf("step %d: %d, %v, want %d", i, resultOf(m), err, s.want)
		}
	}
	close(turn)
	done := make(chan struct{})
	go func() { peer.Wait(); close(done) }()
	for over := false; !over; server.Progress() { // the answer to the last has to leave
		select {
		case <-done:
			over = true
		default:
		}
	}
}

func adds(n uint64) func(context.Context, *xdpfab.Peer, xdpfab.Remote[uint64]) error {
	return func(ctx context.Context, _ *xdpfab.Peer, w xdpfab.Remote[uint64]) error {
		_, err := w.Add(ctx, n)
		return err
	}
}

// Of many that wait, each for its own word and all for a common one, none is forgotten:
// nothing else happens that could wake one that was.
func TestWaitWordForgetsNobody(t *testing.T) {
	ctx := sleepLong(t)
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		if a.Progress == fi.ProgressManual {
			defer drive(f.server)() // while nobody waits, answers have to leave
		}
		p, err := f.client.Dial(ctx, f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		const waiters = 32
		rounds := uint64(reduced(40, 10))
		common := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, waiters)
		var peers, owners sync.WaitGroup
		for i := range uint64(waiters) {
			seen := make(chan uint64)
			peers.Go(func() {
				w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, i)
				for n := range seen {
					if _, err := w.Add(ctx, 1); err != nil {
						t.Errorf("add after %d: %v", n, err)
					}
				}
				if _, err := common.Add(ctx, 1); err != nil {
					t.Error(err)
				}
			})
			owners.Go(func() {
				for n := range rounds {
					seen <- n // the peer adds at any time from here on
					if err := f.server.WaitWord(ctx, f.region, until(atomic.Cswap, i, n+1)); err != nil {
						t.Errorf("word %d, round %d: %v", i, n, err)
					}
				}
				close(seen)
				if err := f.server.WaitWord(ctx, f.region, until(atomic.CswapLE, waiters, waiters)); err != nil {
					t.Errorf("common word: %v", err)
				}
			})
		}
		owners.Wait()
		peers.Wait()
	})
}

// A wait ends with its context, with its region and with the domain, and the memory can
// go then; what has been met before is met.
func TestWaitWordEnds(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		other, err := f.server.NewRegion("other", 4096)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		wait := func(ctx context.Context, r *mr.Region) {
			go func() { ended <- f.server.WaitWord(ctx, r, until(atomic.Cswap, 0, 1)) }()
			testnet.Eventually(t, "it waits", func() bool { return fi.Waiting(r) == 1 })
		}
		c, cancel := context.WithCancelCause(t.Context())
		wait(c, f.region)
		enough := errors.New("enough")
		cancel(enough)
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("after the context: %v", err)
		}
		wait(t.Context(), other)
		if err := errors.Join(other.Close(), other.Memory().Close()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, fi.ErrClosed) || !strings.Contains(err.Error(), `"other"`) {
			t.Errorf("after the region: %v", err)
		}
		if err := f.server.WaitWord(t.Context(), other, until(atomic.Cswap, 0, 0)); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("a region that is closed: %v", err)
		}
		wait(t.Context(), f.region)
		if err := f.server.CloseAll(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, fi.ErrClosed) {
			t.Errorf("after the domain: %v", err)
		}
	})
}

// The owner's own changes wake those who wait when it says so.
func TestWaitWordChangedHere(t *testing.T) {
	waitingModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		if a.Threading == fi.ThreadDomain {
			t.Skip("the owner makes no two calls at a time")
		}
		own, err := f.region.Int32(7)
		if err != nil {
			t.Fatal(err)
		}
		m := &fi.Msg{Datatype: atomic.Int32, Op: atomic.CswapGT, Offset: 28, Compare: []byte{0, 0, 0, 0}, Result: make([]byte, 4)}
		var owner sync.WaitGroup
		owner.Go(func() {
			testnet.Eventually(t, "it waits", func() bool { return fi.Waiting(f.region) == 1 })
			f.region.Changed() // though nothing has
			own.Add(-5)
			f.region.Changed()
		})
		if err := f.server.WaitWord(ctx(t), f.region, m); err != nil || int32(binary.LittleEndian.Uint32(m.Result)) != -5 {
			t.Errorf("%v, %v", m.Result, err)
		}
		owner.Wait()
	})
}

// Whatever nobody can wait for is refused, by what is wrong with it.
func TestWaitWordRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	eight := make([]byte, 8)
	for name, x := range map[string]struct {
		d    *xdpfab.Domain
		r    *mr.Region
		m    *fi.Msg
		want error
	}{
		"no message":          {f.server, f.region, nil, fi.ErrLength},
		"no comparison":       {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Sum, Compare: eight}, fi.ErrOpNotSupported},
		"another operation":   {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Mswap, Compare: eight}, fi.ErrOpNotSupported},
		"no order":            {f.server, f.region, &fi.Msg{Datatype: atomic.FloatComplex, Op: atomic.CswapLE, Compare: eight}, fi.ErrOpNotSupported},
		"no datatype":         {f.server, f.region, &fi.Msg{Datatype: 99, Op: atomic.Cswap, Compare: eight}, fi.ErrOpNotSupported},
		"no comparand":        {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Cswap}, fi.ErrLength},
		"a short result":      {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Cswap, Compare: eight, Result: eight[:4]}, fi.ErrLength},
		"beyond the end":      {f.server, f.region, until(atomic.Cswap, uint64(f.region.Len()/8), 0), fi.ErrOutOfBounds},
		"far beyond":          {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Cswap, Offset: math.MaxUint64, Compare: eight}, fi.ErrOutOfBounds},
		"misaligned":          {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Cswap, Offset: 4, Compare: eight}, fi.ErrMisaligned},
		"no region":           {f.server, nil, until(atomic.Cswap, 0, 0), fi.ErrForeign},
		"the peer's region":   {f.client, f.region, until(atomic.Cswap, 0, 0), fi.ErrForeign},
		"something to change": {f.server, f.region, &fi.Msg{Datatype: atomic.Uint64, Op: atomic.Cswap, Compare: eight, Buf: eight}, fi.ErrLength},
	} {
		if err := x.d.WaitWord(t.Context(), x.r, x.m); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
}

// Memory of a guest that its host cannot map is watched where its operations are
// executed, in the guest.
func TestWaitWordAttended(t *testing.T) {
	for _, mode := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newAttended(t, 4096, fi.DomainAttr{Progress: mode})
			w := xdpfab.WordAt[uint64](x.peer, x.remote, 5)
			var peer sync.WaitGroup
			peer.Go(func() {
				for range 100 {
					if _, err := w.Add(ctx(t), 1); err != nil {
						t.Error(err)
					}
				}
			})
			for n := uint64(10); n <= 100; n += 10 {
				if err := x.guest.WaitWord(ctx(t), x.region, until(atomic.CswapLE, 5, n)); err != nil {
					t.Fatal(err)
				}
			}
			if mode == fi.ProgressManual {
				defer drive(x.guest)()
			}
			peer.Wait()
		})
	}
}

// On a veth: memory that the poller changes, and memory that the XDP program changes,
// with the poller asleep.
func TestVethWaitWord(t *testing.T) {
	for name, attr := range map[string]fi.DomainAttr{
		"auto":   {},
		"manual": {Progress: fi.ProgressManual},
		"alone":  {Progress: fi.ProgressManual, Threading: fi.ThreadDomain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				a, b, _ := onVeth(t, 1, fi.DomainAttr{}, attr)
				r, err := b.NewRegion("words", 4096)
				if err != nil {
					t.Fatal(err)
				}
				testWaitWord(t, a, b, r, r.Key())
			})
			t.Run("resident", func(t *testing.T) {
				a, b, hot := onResident(t, 1, fi.DomainAttr{}, attr)
				testWaitWord(t, a, b, hot, hot.Key())
				if n := stat(t, b, "resident_requests_executed"); n == 0 {
					t.Error("the XDP program has executed nothing")
				}
			})
		})
	}
}

// Where nobody waits, or somebody waits for something else, executing operations costs no
// allocation.
func TestWaitWordDoesNotAllocate(t *testing.T) {
	manual := fi.DomainAttr{Progress: fi.ProgressManual}
	f := setUpBoth(t, manual, manual, 64)
	if err := f.server.WaitWord(t.Context(), f.region, until(atomic.Cswap, 0, 0)); err != nil {
		t.Fatal(err)
	}
	m := &fi.Msg{Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Buf: make([]byte, 8), Result: make([]byte, 8)}
	round := func() {
		if err := f.ep.FetchAtomic(m, 0); err != nil {
			t.Fatal(err)
		}
		var done [1]fi.Completion
		for n := 0; n == 0; {
			f.server.Progress()
			var err error
			if n, err = f.cq.Read(done[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(2000, round); n != 0 {
		t.Errorf("%v allocations where nobody waits any more", n)
	}
}
