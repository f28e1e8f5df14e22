// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// dialWord dials the server and makes a handle on the first word of its region.
func dialWord[T xdpfab.Element](t *testing.T, f *fixture) (*xdpfab.Peer, xdpfab.Remote[T]) {
	t.Helper()
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[T](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	return p, w
}

// Operations that are started run in their order, and each tells its own outcome, as
// often as it is asked, in both modes of progress.
func TestPending(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) {
			f := setUp(t, fi.DomainAttr{Progress: progress}, 64)
			_, w := dialWord[uint64](t, f)
			var all []*xdpfab.Pending[uint64]
			for range 100 {
				all = append(all, w.StartAdd(ctx(t), 1))
			}
			last := w.StartCompare(ctx(t), atomic.Cswap, 100, 7)
			none := w.StartApply(ctx(t), atomic.Sum, 1)
			read := w.StartFetch(ctx(t), atomic.Read, 0)
			if v, err := read.Wait(ctx(t)); v != 8 || err != nil {
				t.Errorf("read: %d, %v, want 8", v, err)
			}
			if v, err := none.Wait(ctx(t)); v != 0 || err != nil {
				t.Errorf("apply: %d, %v, want 0", v, err)
			}
			if v, err := last.Wait(ctx(t)); v != 100 || err != nil {
				t.Errorf("compare: %d, %v, want 100", v, err)
			}
			for i, c := range all {
				for range 2 {
					if v, err := c.Wait(ctx(t)); v != uint64(i+1) || err != nil {
						t.Fatalf("add %d: %d, %v", i, v, err)
					}
				}
			}
		})
	}
}

// What cannot be started, or is not waited for, says so when it is waited for.
func TestPendingFails(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, w := dialWord[float64](t, f)
	done, cancel := context.WithCancel(ctx(t))
	cancel()
	far := xdpfab.WordAt[float64](p, fi.RemoteRegion{Key: 12345}, 0)
	for name, tt := range map[string]struct {
		p    *xdpfab.Pending[float64]
		want error
	}{
		"zero value": {xdpfab.Remote[float64]{}.StartAdd(ctx(t), 1), fi.ErrClosed},
		"no bits":    {w.StartFetch(ctx(t), atomic.Band, 1), fi.ErrOpNotSupported},
		"cancelled":  {w.StartApply(done, atomic.Sum, 1), fi.ErrNotExecuted},
		"no region":  {far.StartAdd(ctx(t), 1), fi.ErrNoKey},
	} {
		if _, err := tt.p.Wait(ctx(t)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	left := w.StartAdd(ctx(t), 1)
	_, err := left.Wait(done)
	var oe *fi.OpError
	if err != nil && !errors.As(err, &oe) {
		t.Errorf("left: %v, want an OpError", err)
	}
	if _, again := left.Wait(ctx(t)); again != err {
		t.Errorf("left: %v, then %v", err, again)
	}
	shared := w.StartAdd(ctx(t), 1)
	var wg sync.WaitGroup
	values := make([]float64, 4)
	for i := range values {
		wg.Go(func() { values[i], _ = shared.Wait(ctx(t)) })
	}
	wg.Wait()
	for _, v := range values {
		if v != values[0] || v < 1 {
			t.Errorf("several waited: %v", values)
		}
	}
}

// A caller whose context ends leaves, though another one goes on waiting.
func TestPendingOfSeveral(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	_, w := dialWord[uint64](t, f)
	if err := f.client.SetFaults(fi.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	held := w.StartAdd(ctx(t), 1)
	first, stop := context.WithCancel(ctx(t))
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = held.Wait(first) })
	short, cancel := context.WithCancel(ctx(t))
	wg.Go(func() {
		for {
			_, err := held.Wait(short)
			if errors.Is(err, context.Canceled) { // whichever of the two has waited first
				stop()
				return
			}
		}
	})
	cancel()
	wg.Wait()
	if err := f.client.SetFaults(fi.Faults{}); err != nil {
		t.Fatal(err)
	}
}

// An operation that is started and waited for allocates its Pending, and nothing else.
func TestPendingDoesNotAllocate(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	_, w := dialWord[uint64](t, f)
	c := ctx(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a change empties pools, as the collector does
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var first [64]*xdpfab.Pending[uint64] // what they need is kept for others
	for i := range first {
		first[i] = w.StartAdd(c, 1)
	}
	for _, p := range first {
		if _, err := p.Wait(c); err != nil {
			t.Fatal(err)
		}
	}
	for name, start := range map[string]func() *xdpfab.Pending[uint64]{
		"add":     func() *xdpfab.Pending[uint64] { return w.StartAdd(c, 1) },
		"read":    func() *xdpfab.Pending[uint64] { return w.StartFetch(c, atomic.Read, 0) },
		"apply":   func() *xdpfab.Pending[uint64] { return w.StartApply(c, atomic.Sum, 1) },
		"compare": func() *xdpfab.Pending[uint64] { return w.StartCompare(c, atomic.Cswap, 0, 1) },
	} {
		var all [2][16]*xdpfab.Pending[uint64] // to warm up, and to measure
		started, waited := 0, 0
		n := testing.AllocsPerRun(1, func() {
			for i := range all[started] {
				all[started][i] = start()
			}
			started++
		})
		if _, err := w.Load(c); err != nil { // so that no wait has to sleep
			t.Fatal(err)
		}
		n += testing.AllocsPerRun(1, func() {
			for _, p := range all[waited] {
				if _, err := p.Wait(c); err != nil {
					t.Fatal(err)
				}
			}
			waited++
		})
		if n > float64(len(all[0])) {
			t.Errorf("%s: %d operations allocate %v times", name, len(all[0]), n)
		}
	}
}
