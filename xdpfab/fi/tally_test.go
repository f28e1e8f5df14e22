// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// counters makes counters of a domain.
func counters(t *testing.T, d *xdpfab.Domain, n int, attr ...fi.CounterAttr) (list []*fi.Counter) {
	t.Helper()
	for range n {
		c, err := d.NewCounter(attr...)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// remote is a sort of operation on another node's memory, posted a number of times.
type remote struct {
	form  atomic.Func
	n     int // elements
	rma   int // extents
	bad   bool
	again int
}

// remotes are what the counters of what peers do are tried with.
var remotes = []remote{
	{atomic.Base, 1, 0, false, 1}, {atomic.Base, 1, 0, false, 40}, {atomic.Base, 100, 0, false, 1}, {atomic.Base, 2000, 0, false, 2},
	{atomic.Fetch, 1, 0, false, 50}, {atomic.Fetch, 2000, 0, false, 1}, {atomic.Compare, 3, 0, false, 3},
	{atomic.Fetch, 6, 6, false, 1}, {atomic.Base, 1, 0, true, 5}, {atomic.Fetch, 2000, 0, true, 1},
}

// msg is such an operation on words.
func (x remote) msg(dest fi.Address, key uint64) fi.Msg {
	m := fi.Msg{Dest: dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum, Buf: make([]byte, 8*x.n), Count: x.n}
	if x.bad {
		m.Key = 99
	}
	if x.form != atomic.Base {
		m.Result = make([]byte, 8*x.n)
	}
	if x.form == atomic.Compare {
		m.Compare, m.Op = make([]byte, 8*x.n), atomic.Cswap
	}
	for i := range x.rma {
		m.RMA = append(m.RMA, mr.Extent{Key: m.Key, Offset: uint64(16 * i), Count: 1})
	}
	if x.rma > 0 {
		m.Key = 0
	}
	return m
}

// counts returns what counters of reads and of writes make of one.
func (x remote) counts(events fi.CounterEvents) (reads, writes uint64) {
	n := uint64(max(x.rma, 1))
	if events == fi.CountBytes {
		n = uint64(8 * x.n)
	}
	switch {
	case x.bad:
		return 0, 0
	case x.form == atomic.Base:
		return 0, n
	}
	return n, 0
}

// The owner of memory learns how many operations of peers were applied, or their bytes:
// in all by each endpoint, and to each region, whatever the operations look like.
func TestRemoteCounters(t *testing.T) {
	for name, events := range map[string]fi.CounterEvents{"operations": fi.CountCompletions, "bytes": fi.CountBytes} {
		t.Run(name, func(t *testing.T) {
			progressModes(t, func(t *testing.T, a fi.DomainAttr) { testRemoteCounters(t, a, events) })
		})
	}
}

func testRemoteCounters(t *testing.T, a fi.DomainAttr, events fi.CounterEvents) {
	f := setUpBoth(t, fi.DomainAttr{}, a, 64)
	served, err := f.server.NewEndpoint(fi.EndpointAttr{Number: 9})
	if err != nil {
		t.Fatal(err)
	}
	c := counters(t, f.server, 4, fi.CounterAttr{Events: events})
	if err := errors.Join(served.Bind(c[0], fi.BindRemoteRead), served.Bind(c[1], fi.BindRemoteWrite), served.Enable(),
		f.server.BindRegion(f.region, c[2], fi.BindRemoteRead), f.server.BindRegion(f.region, c[3], fi.BindRemoteWrite)); err != nil {
		t.Fatal(err)
	}
	dest, err := f.av.Insert(t.Context(), f.server.Name(9))
	if err != nil {
		t.Fatal(err)
	}
	var reads, writes uint64
	for _, x := range remotes {
		for range x.again {
			m := x.msg(dest, 1)
			if err := post(f, x.form, &m); err != nil {
				t.Fatal(err)
			}
			done := next2(t, f)
			if (done.Err != nil) != x.bad {
				t.Fatalf("%+v: %v", x, done.Err)
			}
			// The initiator knows, so the target has counted.
			read, written := x.counts(events)
			reads, writes = reads+read, writes+written
			for i, want := range []uint64{reads, writes, reads, writes} {
				if got := c[i].Read(); got != want {
					t.Fatalf("after %+v: counter %d is at %d, want %d", x, i, got, want)
				}
			}
		}
	}
	for _, c := range c {
		if n := c.ReadErr(); n != 0 {
			t.Errorf("%d failures are counted, want none", n)
		}
	}
}

// The bytes of a long operation are counted, however many frames it takes and whoever
// serves the region; of one that is refused, none.
func TestRemoteBytesOfLongOperations(t *testing.T) {
	onBothWays(t, func(t *testing.T, a fi.DomainAttr) {
		size := reduced(3<<20, 1<<20+8192)
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		m, err := mr.Memfd("long", size)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		key := uint64(3)
		r, err := f.server.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		c := counters(t, f.server, 2, fi.CounterAttr{Events: fi.CountBytes})
		if err := errors.Join(f.server.BindRegion(r, c[0], fi.BindRemoteRead), f.server.BindRegion(r, c[1], fi.BindRemoteWrite)); err != nil {
			t.Fatal(err)
		}
		l := &long{f, m.Bytes()[:size], c[0], c[1]}
		buf, result := make([]byte, size), make([]byte, size)
		var want [2]uint64
		for i, kind := range []string{"read", "write", "fetch", "array"} {
			n := size - 8*i
			if err := l.post(kind, uint64(8*i+8), buf[:n], result[:n], 0); err != nil {
				t.Fatal(err)
			}
			if c := take(t, f); !errors.Is(c.Err, fi.ErrOutOfBounds) {
				t.Errorf("%s beyond the end: %v", kind, c.Err)
			}
			if err := l.post(kind, uint64(8*i), buf[:n], result[:n], 0); err != nil {
				t.Fatal(err)
			}
			done(t, f)
			want[i%2] += uint64(n)
			if is := [2]uint64{c[0].Read(), c[1].Read()}; is != want {
				t.Errorf("after a %s of %d bytes the owner has counted %d, want %d", kind, n, is, want)
			}
		}
	})
}

// next2 waits for a completion at the initiator while the target makes progress.
func next2(t *testing.T, f *fixture) (c fi.Completion) {
	t.Helper()
	testnet.Eventually(t, "a completion", func() bool {
		f.server.Progress()
		var one [1]fi.Completion
		if n, _ := f.cq.Read(one[:]); n == 1 {
			c = one[0]
			return true
		}
		var ok bool
		c, ok = f.cq.ReadErr()
		return ok
	})
	return c
}

// A goroutine can wait until peers have touched memory.
func TestWaitForPeers(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		c := counters(t, f.server, 1)[0]
		if err := f.server.BindRegion(f.region, c, fi.BindRemoteRead|fi.BindRemoteWrite); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { waited <- c.Wait(t.Context(), 3) }()
		for range 3 {
			f.add(t, 1, 0)
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		if f.word(1) != 3 {
			t.Errorf("the word is %d when three operations are counted", f.word(1))
		}
	})
}

// Wrong bindings are refused, and a counter stays open as long as a region has it.
func TestBindRegion(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, fi.DomainAttr{}, a, 64)
		c, other := counters(t, f.server, 2), counters(t, f.client, 1)[0]
		for name, err := range map[string]error{
			"no flags":       f.server.BindRegion(f.region, c[0], 0),
			"flags of posts": f.server.BindRegion(f.region, c[0], fi.BindRead),
			"no counter":     f.server.BindRegion(f.region, nil, fi.BindRemoteRead),
			"no region":      f.server.BindRegion(nil, c[0], fi.BindRemoteRead),
			"another domain": f.server.BindRegion(f.region, other, fi.BindRemoteRead),
			"not its region": f.client.BindRegion(f.region, other, fi.BindRemoteRead),
		} {
			if err == nil {
				t.Errorf("%s: bound", name)
			}
		}
		if err := f.server.BindRegion(f.region, c[0], fi.BindRemoteRead|fi.BindRemoteWrite); err != nil {
			t.Fatal(err)
		}
		if err := f.server.BindRegion(f.region, c[1], fi.BindRemoteWrite); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("a second counter: %v, want ErrBusy", err)
		}
		if err := c[0].Close(); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("closing a counter that a region has: %v, want ErrBusy", err)
		}
		if err := errors.Join(f.region.Close(), c[0].Close(), c[1].Close()); err != nil {
			t.Error(err)
		}
		if err := f.server.BindRegion(f.region, c[0], fi.BindRemoteRead); err == nil {
			t.Error("a closed region is bound")
		}
	})
}

func ExampleDomain_BindRegion() {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		panic(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	region, _ := b.NewRegion("hits", 64)
	ep, _ := b.NewEndpoint(fi.EndpointAttr{})
	touched, _ := b.NewCounter()
	_ = errors.Join(b.BindRegion(region, touched, fi.BindRemoteRead|fi.BindRemoteWrite), ep.Enable())

	ctx := context.Background()
	go func() {
		peer, _ := a.Dial(ctx, b.Name(0))
		hits, _ := xdpfab.Word[uint64](ctx, peer, "hits", 0)
		_, _ = hits.Add(ctx, 5)
	}()
	_ = touched.Wait(ctx, 1)
	word, _ := region.Uint64(0)
	fmt.Println(word.Load())
	// Output: 5
}
