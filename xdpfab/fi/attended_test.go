// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// attended is a guest with memory that its host cannot map, and a peer of it.
type attended struct {
	guest  *xdpfab.Domain
	talk   *share.Talk // of the guest; its end is the guest's death
	ep     *fi.Endpoint
	peer   *xdpfab.Peer
	memory *mr.Memory
	region *mr.Region
	remote xdpfab.RemoteRegion // the region
}

func newAttended(t *testing.T, size int, attr fi.DomainAttr) *attended {
	t.Helper()
	a, b, _ := pipeWithRegion(t, 4096)
	x := &attended{}
	dial := hostingOf(t, b)
	x.guest = guestBy(t, func(ctx context.Context) (talk *share.Talk, err error) {
		x.talk, err = dial(ctx)
		return x.talk, err
	}, attr, nil)
	var err error
	if x.ep, err = x.guest.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}); err == nil {
		err = x.ep.Enable() // before there is attended memory
	}
	if err != nil {
		t.Fatal(err)
	}
	if x.memory, err = mr.Alloc(size, mr.AllocOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.region.Close(), x.memory.Close()); err != nil {
			t.Error(err)
		}
	})
	if x.region, err = x.guest.Register(x.memory, mr.Options{Length: size, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	x.remote = xdpfab.RemoteRegion{Key: x.region.Key(), Size: uint64(size)}
	if x.peer, err = a.Dial(t.Context(), b.Name(x.ep.Number())); err != nil {
		t.Fatal(err)
	}
	return x
}

// Peers operate on any memory of a guest: words, arrays, transfers of any length, 128
// bits, whoever drives the guest.
func TestAttendedMemory(t *testing.T) {
	for _, mode := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			x, ctx := newAttended(t, 4<<20, fi.DomainAttr{Progress: mode}), t.Context()
			if mode == fi.ProgressManual {
				defer drive(x.guest)()
			}
			word := xdpfab.WordAt[uint64](x.peer, x.remote, 8)
			for i := range uint64(1000) {
				if n, err := word.Add(ctx, 1); n != i+1 || err != nil {
					t.Fatalf("add %d: %d, %v", i, n, err)
				}
			}
			long := random(rand.New(rand.NewPCG(1, 2)), reduced(3<<20, 1<<20+8192))
			if err := x.peer.Write(ctx, x.remote, 4096, long); err != nil {
				t.Fatal(err)
			}
			if string(x.region.Bytes()[4096:][:len(long)]) != string(long) {
				t.Error("what was written is not there")
			}
			back := make([]byte, len(long))
			if err := x.peer.Read(ctx, x.remote, 4096, back); err != nil || string(back) != string(long) {
				t.Errorf("read back: %v", err)
			}
			v := xdpfab.VectorAt[uint64](x.peer, x.remote)
			sums := make([]uint64, 300)
			deltas := make([]uint64, 300)
			for i := range deltas {
				deltas[i] = uint64(i)
			}
			if err := v.StoreRange(ctx, 100, deltas); err != nil {
				t.Fatal(err)
			}
			if err := v.AddRange(ctx, 100, deltas, sums); err != nil || sums[299] != 598 {
				t.Errorf("sum %d, want 598: %v", sums[299], err)
			}
			wide := xdpfab.WordAt[xdpfab.U128](x.peer, x.remote, 3)
			if swapped, err := wide.CompareAndSwap(ctx, xdpfab.U128{}, xdpfab.U128{Lo: 7, Hi: 9}); !swapped || err != nil {
				t.Errorf("128 bits: %t, %v", swapped, err)
			}
			if was, err := wide.Load(ctx); was != (xdpfab.U128{Lo: 7, Hi: 9}) || err != nil {
				t.Errorf("128 bits: %v, %v", was, err)
			}
			far := xdpfab.WordAt[uint64](x.peer, xdpfab.RemoteRegion{Key: x.remote.Key, Size: 1 << 40}, 1<<30)
			if _, err := far.Load(ctx); !errors.Is(err, fi.ErrOutOfBounds) {
				t.Errorf("outside: %v", err)
			}
			none := xdpfab.WordAt[uint64](x.peer, xdpfab.RemoteRegion{Key: 12345, Size: 64}, 0)
			if _, err := none.Load(ctx); !errors.Is(err, fi.ErrNoKey) {
				t.Errorf("unknown key: %v", err)
			}
			stale := xdpfab.WordAt[uint64](x.peer, xdpfab.RemoteRegion{Key: x.remote.Key, Size: 64, Incarnation: x.region.Incarnation() + 1}, 0)
			if _, err := stale.Load(ctx); !errors.Is(err, xdpfab.ErrPeerRestarted) {
				t.Errorf("another incarnation: %v", err)
			}
		})
	}
}

// drive reads nothing, and has a domain with manual progress go on until the function
// that it returns is called.
func drive(d *xdpfab.Domain) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			d.Progress()
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// Memory that the host has mapped and memory that it has not serve one endpoint, in the
// order of each peer.
func TestAttendedMix(t *testing.T) {
	x, ctx := newAttended(t, 4096, fi.DomainAttr{}), t.Context()
	shared, err := x.guest.NewRegion("shared", 4096)
	if err != nil {
		t.Fatal(err)
	}
	here := xdpfab.WordAt[uint64](x.peer, xdpfab.RemoteRegion{Key: shared.Key(), Size: 4096}, 0)
	there := xdpfab.WordAt[uint64](x.peer, x.remote, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range reduced(500, 100) {
				if _, err := here.Add(ctx, 1); err != nil {
					t.Error(err)
					return
				}
				if err := there.Apply(ctx, 2, 1); err != nil { // sum
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	a, err := here.Load(ctx)
	b, err2 := there.Load(ctx)
	if err := errors.Join(err, err2); err != nil || a != b || a != uint64(4*reduced(500, 100)) {
		t.Errorf("%d and %d: %v", a, b, err)
	}
}

// Nobody drives the guest: its peers wait, and do not give up. When the guest dies, what
// it was handed may have run once, and what it was not handed did not run.
func TestAttendedStops(t *testing.T) {
	x, ctx := newAttended(t, 4096, fi.DomainAttr{Progress: fi.ProgressManual}), t.Context()
	word := xdpfab.WordAt[uint64](x.peer, x.remote, 0)
	const under = 500 // far more than one session hands over
	out := make(chan error, under)
	for range under {
		go func() {
			_, err := word.Add(ctx, 1)
			out <- err
		}()
	}
	select {
	case err := <-out:
		t.Fatalf("ended without anybody to execute it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	x.talk.End()
	for range under {
		if err := <-out; !errors.Is(err, fi.ErrOutcomeUnknown) && !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("%v, want an unknown outcome, or none", err)
		}
	}
	if n := x.memory.Bytes()[0]; n != 0 {
		t.Errorf("%d operations ran in a guest that nobody drove", n)
	}
}

// A guest that closes an endpoint answers what it was handed: none of it ran.
func TestAttendedCloses(t *testing.T) {
	x, ctx := newAttended(t, 4096, fi.DomainAttr{Progress: fi.ProgressManual}), t.Context()
	word := xdpfab.WordAt[uint64](x.peer, x.remote, 0)
	out := make(chan error, 1)
	go func() {
		_, err := word.Add(ctx, 1)
		out <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := x.ep.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-out; !errors.Is(err, fi.ErrOutcomeUnknown) && !errors.Is(err, fi.ErrNotExecuted) || x.memory.Bytes()[0] != 0 {
		t.Errorf("%v, value %d", err, x.memory.Bytes()[0])
	}
}

// Hosts take over from one another while peers operate on memory that only the guest has
// mapped, many at a time: sums are exact, nothing fails, and each finds every value once.
func TestAttendedTakeover(t *testing.T) {
	s, b := newSuccession(t)
	ctx := t.Context()
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	memory, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Register(memory, mr.Options{Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), memory.Close()); err != nil {
			t.Error(err)
		}
	})
	ep, err := g.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Dial(ctx, g.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	at := xdpfab.RemoteRegion{Key: r.Key(), Size: 4096, Incarnation: r.Incarnation()}
	l := &load{t: t}
	shared := xdpfab.WordAt[uint64](p, at, 100)
	for i := range uint64(8) {
		own := xdpfab.WordAt[uint64](p, at, i)
		l.loop("add", func(n uint64) error {
			if sum, err := own.Add(ctx, 1); err != nil || sum != n+1 {
				return fmt.Errorf("sum %d, want %d: %w", sum, n+1, err)
			}
			_, err := shared.Add(ctx, 1)
			return err
		})
	}
	for range reduced(5, 2) {
		l.goOn()
		s.next()
	}
	l.goOn()
	l.stop.Store(true)
	want := uint64(0)
	for _, r := range l.runs {
		<-r.done
		want += r.n.Load()
	}
	if sum, err := shared.Load(ctx); err != nil || sum != want {
		t.Errorf("sum %d, want %d: %v", sum, want, err)
	}
}

// Memory that the guest attends takes no signal, nor a write with one: both are refused,
// whichever of the two is in other memory, and nothing has changed.
func TestAttendedRefusesSignals(t *testing.T) {
	x, ctx := newAttended(t, 64<<10, fi.DomainAttr{}), t.Context()
	shared, err := x.guest.NewRegion("shared", 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	attended, mapped := x.remote, xdpfab.RemoteRegion{Key: shared.Key(), Size: 64 << 10}
	for _, to := range []struct {
		name       string
		data, word xdpfab.RemoteRegion
		want       error
	}{
		{"both", attended, attended, fi.ErrOpNotSupported},
		{"the bytes", attended, mapped, fi.ErrOpNotSupported},
		{"the word", mapped, attended, fi.ErrNoKey},
	} {
		for _, n := range []int{0, 8, 20_000} {
			s := xdpfab.Signal{Region: to.word, Index: 1, Op: atomic.Sum, Value: 1}
			err := x.peer.WriteSignal(ctx, to.data, 4096, bytes.Repeat([]byte{1}, n), s)
			if !errors.Is(err, to.want) || !errors.Is(err, fi.ErrNotExecuted) {
				t.Errorf("%s, %d bytes: %v, want %v", to.name, n, err, to.want)
			}
			if says := "its program alone has mapped this memory, behind a daemon"; to.want == fi.ErrOpNotSupported &&
				!strings.Contains(err.Error(), says) {
				t.Errorf("%s, %d bytes: %v, want %q", to.name, n, err, says)
			}
		}
	}
	for name, r := range map[string]xdpfab.RemoteRegion{"attended": attended, "mapped": mapped} {
		got := make([]byte, r.Size)
		if err := x.peer.Read(ctx, r, 0, got); err != nil || bytes.Count(got, []byte{0}) != len(got) {
			t.Errorf("%s memory: %v, or it has changed", name, err)
		}
	}
}
