// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// onVeth opens a domain on either side of a veth pair.
func onVeth(t testing.TB, queues int, client, server fi.DomainAttr) (a, b *xdpfab.Domain, pair *testnet.Pair) {
	t.Helper()
	a, b, pair = openVeth(t, testnet.Options{Queues: queues}, client, server)
	ep, err := b.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.NewRegion("r", 1<<20); err != nil {
		t.Fatal(err)
	}
	return a, b, pair
}

// openVeth opens a domain at either end of a veth pair.
func openVeth(t testing.TB, o testnet.Options, client, server fi.DomainAttr) (a, b *xdpfab.Domain, pair *testnet.Pair) {
	t.Helper()
	testnet.Require(t)
	pair = testnet.NewPair(t, o)
	b = openAt(t, pair.B, pair.B.IfName, server)
	a = openAt(t, pair.A, pair.A.IfName, client)
	return a, b, pair
}

// The spine, for real: raw Ethernet, UDP over both IPs, either progress.
func TestVeth(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(fmt.Sprintf("progress=%d", progress), func(t *testing.T) {
			a, b, pair := onVeth(t, 1, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
			for i, addr := range []string{b.Name(0), pair.B.IP4.String(), pair.B.IP6.String()} {
				p, err := a.Dial(ctx(t), addr)
				if err != nil {
					t.Fatalf("%s: %v", addr, err)
				}
				w, err := xdpfab.Word[uint64](ctx(t), p, "r", uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				c, times := ctx(t), reduced(1000, 300)
				for range times {
					if _, err := w.Add(c, 1); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := w.Load(c); n != uint64(times) || err != nil {
					t.Errorf("%s: sum %d, %v, want %d", addr, n, err, times)
				}
				v, err := xdpfab.Vector[uint64](ctx(t), p, "r")
				if err != nil {
					t.Fatal(err)
				}
				at, sums := make([]uint64, 1000), make([]uint64, 1000) // of several frames
				ones := slices.Repeat([]uint64{1}, len(at))
				for j := range at {
					at[j] = v.Len() - 1 - uint64(i)
				}
				if err := v.Add(ctx(t), at, ones, sums); err != nil || sums[999] != 1000 || !slices.IsSorted(sums) {
					t.Errorf("%s: %v, last sum %d, want 1000", addr, err, sums[999])
				}
				if err := p.Close(); err != nil { // the next address is of the same endpoint, and would share its session
					t.Fatal(err)
				}
			}
		})
	}
}

// Every queue of a multi-queue interface carries sessions.
func TestVethMultiQueue(t *testing.T) { onAllQueues(t, 0) }

// A domain may use fewer queues than the interface has. Frames that arrive on the others
// reach it all the same.
func TestVethFewerQueues(t *testing.T) {
	b := onAllQueues(t, 1)
	if i := b.Interface(); i.Queues != 1 || i.Relayed != 2 {
		t.Errorf("%d queues in use, and %d others: want 1 and 2", i.Queues, i.Relayed)
	}
}

// onAllQueues adds to a word from endpoints on all three queues of a veth, at whose other
// end a domain uses so many, and returns that.
func onAllQueues(t *testing.T, queues int) *xdpfab.Domain {
	a, b, _ := onVeth(t, 3, fi.DomainAttr{}, fi.DomainAttr{Queues: queues})
	av, _ := a.NewAddressVector()
	dest, err := av.Insert(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 8)
	one[0] = 1
	const each = 5000
	for range 3 { // endpoints take the queues in turn
		cntr, _ := a.NewCounter()
		ep, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ep.Bind(av, 0), ep.Bind(cntr, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < each; {
			err := ep.InjectAtomic(&fi.Msg{Buf: one, Count: 1, Dest: dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Sum})
			if errors.Is(err, fi.ErrAgain) {
				time.Sleep(10 * time.Microsecond)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if err := cntr.Wait(ctx(t), each); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := xdpfab.WordAt[uint64](p, r, 0).Load(ctx(t)); n != 3*each || err != nil {
		t.Errorf("sum %d, %v, want %d", n, err, 3*each)
	}
	counters, err := b.Stats()
	if err != nil || counters["sessions_accepted"] < 3 || counters["refused_bad_crc"] != 0 || counters["xdp_drop_no_socket"] != 0 {
		t.Errorf("counters %v, %v", counters, err)
	}
	return b
}

// An array of the region's size, through segments, there and back.
func TestVethLongArray(t *testing.T) {
	a, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	av, _ := a.NewAddressVector()
	cq, _ := a.NewCompletionQueue(fi.CQAttr{})
	ep, err := a.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	dest, _ := av.Insert(ctx(t), b.Name(0))
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	const n = 1 << 17
	data, back := make([]byte, 8*n), make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(data[8*i:], uint64(i)*0x9E3779B97F4A7C15)
	}
	if err := ep.Atomic(&fi.Msg{Buf: data, Count: n, Dest: dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Write}, 0); err != nil {
		t.Fatal(err)
	}
	if err := ep.FetchAtomic(&fi.Msg{Count: n, Result: back, Dest: dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Read}, 0); err != nil {
		t.Fatal(err)
	}
	if err := cq.Wait(ctx(t), 2); err != nil {
		t.Fatal(err)
	}
	var c [2]fi.Completion
	if k, err := cq.Read(c[:]); k != 2 || err != nil {
		t.Fatal(k, err)
	}
	if !slices.Equal(data, back) {
		t.Error("what came back is not what was written")
	}
}

// The peer's interface goes down and comes back: work goes on.
func TestVethLinkFlap(t *testing.T) {
	a, b, pair := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	resent := func() uint64 {
		s, err := a.Stats()
		if err != nil {
			t.Error(err)
		}
		return s["frames_resent"]
	}
	for range 3 {
		if _, err := w.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		testnet.IP(t, pair.B, "link set "+pair.B.IfName+" down")
		before, done := resent(), make(chan error)
		go func() {
			_, err := w.Add(ctx(t), 1)
			done <- err
		}()
		testnet.Eventually(t, "the request was sent in vain", func() bool { return resent() > before })
		testnet.IP(t, pair.B, "link set "+pair.B.IfName+" up")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.Load(ctx(t)); n != 6 || err != nil {
		t.Errorf("sum %d, %v, want 6", n, err)
	}
}

func BenchmarkVeth(b *testing.B) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		b.Run(fmt.Sprintf("latency/progress=%d", progress), func(b *testing.B) {
			client, server, _ := onVeth(b, 1, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
			p, err := client.Dial(ctx(b), server.Name(0))
			if err != nil {
				b.Fatal(err)
			}
			w, err := xdpfab.Word[uint64](ctx(b), p, "r", 0)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Add(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("throughput/progress=%d", progress), func(b *testing.B) {
			client, server, _ := onVeth(b, 1, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
			p, err := client.Dial(ctx(b), server.Name(0))
			if err != nil {
				b.Fatal(err)
			}
			r, err := p.Lookup(ctx(b), "r")
			if err != nil {
				b.Fatal(err)
			}
			av, _ := client.NewAddressVector()
			cq, _ := client.NewCompletionQueue(fi.CQAttr{Size: 4096})
			ep, _ := client.NewEndpoint(fi.EndpointAttr{Size: 4096})
			dest, _ := av.Insert(ctx(b), server.Name(0))
			if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
				b.Fatal(err)
			}
			one, result := make([]byte, 8), make([]byte, 8)
			one[0] = 1
			done := make([]fi.Completion, 256)
			b.ReportAllocs()
			pending := 0
			for b.Loop() {
				for ep.FetchAtomic(&fi.Msg{Buf: one, Count: 1, Result: result, Dest: dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Sum}, 0) != nil {
					n, err := cq.Read(done)
					if err != nil {
						b.Fatal(err)
					}
					pending -= n
				}
				pending++
			}
		})
	}
}

// Three clients on a switch, one server: the sum is exact.
func TestVethManyNodes(t *testing.T) {
	testnet.Require(t)
	star := testnet.NewStar(t, 4, testnet.Options{})
	doms := make([]*xdpfab.Domain, len(star.Sides))
	for i, s := range star.Sides {
		err := s.Do(func() (err error) {
			doms[i], err = xdpfab.Open(context.Background(), s.IfName, fi.DomainAttr{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer doms[i].CloseAll()
	}
	ep, err := doms[0].NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	region, err := doms[0].NewRegion("r", 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	const each = 2000
	var wg sync.WaitGroup
	for _, d := range doms[1:] {
		wg.Go(func() {
			p, err := d.Dial(ctx(t), doms[0].Name(0))
			if err != nil {
				t.Error(err)
				return
			}
			w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: region.Key()}, 1)
			for range each {
				if _, err := w.Add(ctx(t), 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := binary.LittleEndian.Uint64(region.Bytes()[8:]); got != 3*each {
		t.Errorf("sum %d, want %d", got, 3*each)
	}
}
