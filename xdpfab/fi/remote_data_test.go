// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// target is an endpoint that takes data from peers.
type target struct {
	ep   *fi.Endpoint
	cq   *fi.CompletionQueue
	name string
}

// newTarget makes endpoint 7 of a domain, with a queue of the given size for what peers
// do, and an address vector with the given addresses.
func newTarget(t testing.TB, d *xdpfab.Domain, size int, peers ...string) *target {
	t.Helper()
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	av, err1 := d.NewAddressVector()
	cq, err2 := d.NewCompletionQueue(fi.CQAttr{Size: size})
	if err := errors.Join(err1, err2, ep.Bind(av, 0), ep.Bind(cq, fi.BindRecv|fi.BindTransmit), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		if _, err := av.Insert(ctx(t), p); err != nil {
			t.Fatal(err)
		}
	}
	return &target{ep, cq, d.Name(7)}
}

// next waits for a completion.
func (x *target) next(t testing.TB) fi.Completion {
	t.Helper()
	var one [1]fi.Completion
	for {
		if err := x.cq.Wait(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
		if n, err := x.cq.Read(one[:]); err != nil {
			t.Fatal(err)
		} else if n == 1 {
			return one[0]
		}
	}
}

// withData are operations in every form and length that carry data.
func withData(dest fi.Address, each func(name string, form atomic.Func, m *fi.Msg, flags fi.OpFlags)) {
	for _, n := range []int{1, 2, 100, 3000} {
		for _, form := range []atomic.Func{atomic.Base, atomic.Fetch, atomic.Compare} {
			for _, kind := range []string{"array", "inject", "extents", "pieces", "fence"} {
				buf := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, n)
				m := &fi.Msg{Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Buf: buf, Count: n}
				if form != atomic.Base {
					m.Result = make([]byte, 8*n)
				}
				if form == atomic.Compare {
					m.Compare, m.Op = make([]byte, 8*n), atomic.Cswap
				}
				flags := fi.FlagRemoteCQData
				switch kind {
				case "inject":
					if n > 2 {
						continue
					}
					flags |= fi.FlagInject
				case "extents":
					m.Key = 0
					for i := range n {
						m.RMA = append(m.RMA, mr.Extent{Key: 1, Offset: uint64(8 * i), Count: 1})
					}
				case "pieces":
					m.Buf, m.Pieces = nil, &fi.Pieces{Buf: [][]byte{buf[:8], buf[8:]}}
				case "fence":
					flags |= fi.FlagFence
				}
				each(fmt.Sprintf("%v of %d as %s", form, n, kind), form, m, flags)
			}
		}
	}
}

// An operation with data makes one entry at the target, when memory shows all of it, with
// the data, the length, and the peer that it came from.
func TestRemoteCQData(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f := setUpBoth(t, fi.DomainAttr{}, fi.DomainAttr{Progress: progress}, 64)
		at := newTarget(t, f.server, 16, fi.Nobody(), f.ep.Name())
		dest, err := f.av.Insert(ctx(t), at.name)
		if err != nil {
			t.Fatal(err)
		}
		data := uint64(1) << 63
		withData(dest, func(name string, form atomic.Func, m *fi.Msg, flags fi.OpFlags) {
			clear(f.mem)
			data++
			m.Data = data
			if err := post2(f, form, m, flags); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := at.next(t)
			if f.mem[0] != 1 || f.mem[8*(m.Count-1)] != 1 {
				t.Errorf("%s: the entry comes before memory has changed", name)
			}
			want := fi.Completion{
				Endpoint: at.ep, Flags: fi.CompletionAtomic | fi.CompletionRemoteCQData | fi.CompletionRemoteRead,
				Source: 1, Bytes: 8 * m.Count, Data: data,
			}
			if form == atomic.Base {
				want.Flags = fi.CompletionAtomic | fi.CompletionRemoteCQData | fi.CompletionRemoteWrite
			}
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
			if c := next2(t, f); c.Err != nil || c.Data != 0 {
				t.Errorf("%s: at the initiator: %+v", name, c)
			}
		})
		var more [4]fi.Completion
		if n, err := at.cq.Read(more[:]); n != 0 || err != nil {
			t.Errorf("%d entries too many, %v: %+v", n, err, more[0])
		}
	}
}

// post2 posts a message in one of the forms, with flags.
func post2(f *fixture, form atomic.Func, m *fi.Msg, flags fi.OpFlags) error {
	switch form {
	case atomic.Fetch:
		return f.ep.FetchAtomic(m, flags)
	case atomic.Compare:
		return f.ep.CompareAtomic(m, flags)
	}
	return f.ep.Atomic(m, flags)
}

// A peer that is not in the address vector is unknown; one that was removed from it as
// well, unless the vector has it twice.
func TestRemoteCQDataSource(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	at := newTarget(t, f.server, 16)
	av, err := f.server.NewAddressVector()
	if err != nil {
		t.Fatal(err)
	}
	ep, err1 := f.server.NewEndpoint(fi.EndpointAttr{Number: 8})
	cq, err2 := f.server.NewCompletionQueue(fi.CQAttr{})
	if err := errors.Join(err1, err2, ep.Bind(av, 0), ep.Bind(cq, fi.BindTransmit), ep.Bind(at.cq, fi.BindRecv), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	dest, err := f.av.Insert(ctx(t), ep.Name())
	if err != nil {
		t.Fatal(err)
	}
	source := func() fi.Address {
		t.Helper()
		m := fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData); err != nil {
			t.Fatal(err)
		}
		c := at.next(t)
		if c.Endpoint != ep || next2(t, f).Err != nil {
			t.Errorf("%+v, want an entry of endpoint 8", c)
		}
		return c.Source
	}
	if got := source(); got != fi.NoAddress {
		t.Errorf("source %d, want unknown", got)
	}
	for range 3 {
		if _, err := av.Insert(ctx(t), f.ep.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for a := range fi.Address(3) {
		if got := source(); got != a {
			t.Errorf("source %d, want %d", got, a)
		}
		if err := av.Remove(a); err != nil {
			t.Fatal(err)
		}
	}
	if got := source(); got != fi.NoAddress {
		t.Errorf("source %d, want unknown again", got)
	}
}

// While the queue of the target is full, operations with data wait at the initiator, and
// so do those behind them. None is lost, doubled, or out of order, whatever the network
// does.
func TestRemoteCQDataWaits(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 1024)
	at := newTarget(t, f.server, 4, f.ep.Name())
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	faults := fi.Faults{Loss: 0.1, Duplicate: 0.2, Reorder: 0.2}
	if err := errors.Join(f.client.SetFaults(faults), f.server.SetFaults(faults)); err != nil {
		t.Fatal(err)
	}
	const n = 200
	for i := range n {
		m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Offset: uint64(8 * i), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Data: uint64(i)}
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData|fi.FlagInject); err != nil {
			t.Fatal(err)
		}
	}
	stats := func(name string) uint64 {
		all, err := f.server.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return all[name]
	}
	testnet.Eventually(t, "an operation that waits", func() bool { return stats("request_no_place") > 0 })
	done := make([]fi.Completion, n)
	if got, err := f.cq.Read(done); got > 4 || err != nil {
		t.Fatalf("%d operations have completed, %v; the queue has room for 4", got, err)
	} else {
		done = done[got:]
	}
	for i := range n {
		if c := at.next(t); c.Data != uint64(i) || c.Source != 0 {
			t.Fatalf("entry %d is %+v", i, c)
		}
		if got := binary.LittleEndian.Uint64(f.mem[8*i:]); got != 1 {
			t.Fatalf("word %d is %d", i, got)
		}
	}
	for range done {
		if c := next(t, f.cq); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if got, _ := at.cq.Read(make([]fi.Completion, 1)); got != 0 {
		t.Error("an entry too many")
	}
}

// An endpoint that has no queue for them takes no data: the operation is refused before
// any of it has left, and the error says where to bind what. Others go on.
func TestRemoteCQDataRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for _, n := range []int{1, 3000} {
		m := fi.Msg{Buf: bytes.Repeat([]byte{1}, 8*n), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Data: 5}
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData); err != nil {
			t.Fatal(err)
		}
		err := next(t, f.cq).Err
		for _, is := range []error{fi.ErrNoRemoteCQ, fi.ErrNotExecuted, errors.ErrUnsupported, syscall.ENOSYS} {
			if !errors.Is(err, is) {
				t.Errorf("%v, want %v", err, is)
			}
		}
		if err == nil || !strings.Contains(err.Error(), f.server.Name(0)) || !strings.Contains(err.Error(), "BindRecv") {
			t.Errorf("%v: want the peer and the remedy", err)
		}
		if f.mem[0] != 0 {
			t.Error("a part of it was executed")
		}
		if err := f.ep.Atomic(&m, 0); err != nil {
			t.Fatal(err)
		}
		if c := next(t, f.cq); c.Err != nil || f.mem[0] != 1 {
			t.Errorf("without the flag: %v", c.Err)
		}
		clear(f.mem)
	}
}

// One queue can serve both directions, two of which each endpoint has only one.
func TestBindRecv(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	ep, err := f.server.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	cq, err := f.server.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Bind(f.cq, fi.BindRecv); !errors.Is(err, fi.ErrForeign) {
		t.Errorf("a queue of another domain: %v", err)
	}
	if err := errors.Join(ep.Bind(cq, fi.BindRecv), ep.Bind(cq, fi.BindTransmit|fi.BindSelective)); err != nil {
		t.Error(err)
	}
	for _, flags := range []fi.BindFlags{fi.BindRecv, fi.BindTransmit, 0} {
		if err := ep.Bind(cq, flags); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("%v again: %v", flags, err)
		}
	}
	if err := errors.Join(ep.Enable(), ep.Close(), cq.Close()); err != nil {
		t.Error(err)
	}
}

// An endpoint whose queue is full can be closed: the operations that wait there fail as
// not executed, what has arrived can be read, and other endpoints go on.
func TestTargetClosesWhileFull(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	at := newTarget(t, f.server, 2)
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		m := fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Data: uint64(i)}
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData|fi.FlagInject); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if c := next(t, f.cq); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if err := errors.Join(at.ep.Close(), at.cq.Close()); err != nil {
		t.Fatal(err)
	}
	for range 7 {
		if c := next(t, f.cq); !errors.Is(c.Err, fi.ErrNotExecuted) {
			t.Errorf("%v, want not executed", c.Err)
		}
	}
	got := make([]fi.Completion, 9)
	if n, err := at.cq.Read(got); n != 2 || err != nil || got[1].Data != 1 {
		t.Errorf("%d entries, %v: %+v", n, err, got[:n])
	}
	m := fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := f.ep.Atomic(&m, 0); err != nil || next(t, f.cq).Err != nil {
		t.Errorf("another endpoint: %v", err)
	}
}

// A queue for both directions gives neither the better of the other, nor of an error.
func TestQueueOfBothDirections(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	at := newTarget(t, f.server, 64, f.ep.Name())
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		out := fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		back := fi.Msg{Buf: make([]byte, 8), Dest: 0, Key: 404, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := errors.Join(f.ep.Atomic(&out, fi.FlagRemoteCQData|fi.FlagInject), at.ep.Atomic(&back, fi.FlagInject)); err != nil {
			t.Fatal(err)
		}
	}
	if err := at.cq.Wait(ctx(t), 6); err != nil {
		t.Fatal(err)
	}
	arrived, failed := 0, 0
	var one [1]fi.Completion
	for range 100 {
		n, err := at.cq.Read(one[:])
		switch {
		case n == 1 && one[0].Flags&fi.CompletionRemoteCQData != 0:
			arrived++
		case errors.Is(err, fi.ErrErrorPending):
			if c, ok := at.cq.ReadErr(); ok && errors.Is(c.Err, fi.ErrNoKey) {
				failed++
			}
		}
		if d := arrived - failed; d < -1 || d > 1 {
			t.Fatalf("%d arrived, %d failed: they do not take turns", arrived, failed)
		}
	}
	if arrived != 3 || failed != 3 {
		t.Errorf("%d arrived, %d failed, want 3 and 3", arrived, failed)
	}
}

// Reading and posting do not allocate.
func TestRemoteCQDataDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	f := setUpBoth(t, fi.DomainAttr{Progress: fi.ProgressManual}, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	at := newTarget(t, f.server, 16, f.ep.Name())
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	m := fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	var one [1]fi.Completion
	round := func() {
		if err := f.ep.Atomic(&m, fi.FlagRemoteCQData); err != nil {
			t.Fatal(err)
		}
		for here, there := 0, 0; here == 0 || there == 0; {
			n, _ := f.cq.Read(one[:])
			here += n
			n, _ = at.cq.Read(one[:])
			there += n
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A goroutine that waits for entries wakes up whichever queue the session is on, and with
// every encapsulation the source is the peer's address.
func TestVethRemoteCQData(t *testing.T) {
	queues := min(3, testnet.Granted(t).Queues)
	each := reduced(400, 150)
	for _, kind := range []string{"ethernet", "ipv4", "ipv6"} {
		t.Run(kind, func(t *testing.T) {
			a, b, pair := onVeth(t, queues, fi.DomainAttr{Queues: queues}, fi.DomainAttr{Queues: queues})
			to, from := b.Name(7), func(ep *fi.Endpoint) string { return ep.Name() }
			if kind != "ethernet" {
				local, remote := pair.A.IP4, pair.B.IP4
				if kind == "ipv6" {
					local, remote = pair.A.IP6, pair.B.IP6
				}
				to = fmt.Sprintf("%v/7", remote)
				from = func(ep *fi.Endpoint) string { return fmt.Sprintf("%v/%d", local, ep.Number()) }
			}
			region, err := b.NewRegion("data", 1<<16)
			if err != nil {
				t.Fatal(err)
			}
			var eps []*fi.Endpoint
			var cqs []*fi.CompletionQueue
			var names []string
			for range queues * 2 { // endpoints take the queues in turn
				ep, err1 := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
				av, err2 := a.NewAddressVector()
				cq, err3 := a.NewCompletionQueue(fi.CQAttr{})
				if err := errors.Join(err1, err2, err3, ep.Bind(av, 0), ep.Bind(cq, fi.BindTransmit), ep.Enable()); err != nil {
					t.Fatal(err)
				}
				if _, err := av.Insert(ctx(t), to); err != nil {
					t.Fatal(err)
				}
				eps, cqs, names = append(eps, ep), append(cqs, cq), append(names, from(ep))
			}
			at := newTarget(t, b, 64, names...)
			for i, ep := range eps {
				go func() {
					for k := range each {
						m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Offset: uint64(8 * i), Key: region.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Data: uint64(k)}
						for errors.Is(ep.Atomic(&m, fi.FlagRemoteCQData|fi.FlagInject), fi.ErrAgain) {
							_ = cqs[i].Wait(context.Background(), 1)
						}
					}
				}()
			}
			came := make([]uint64, len(eps))
			for range len(eps) * each {
				c := at.next(t)
				if c.Flags&fi.CompletionRemoteCQData == 0 || int(c.Source) >= len(eps) || c.Data != came[c.Source] {
					t.Fatalf("%+v, want number %v of its source", c, came)
				}
				came[c.Source]++
				if got := binary.LittleEndian.Uint64(region.Bytes()[8*c.Source:]); got < came[c.Source] {
					t.Fatalf("entry %d of source %d, but the word is %d", came[c.Source], c.Source, got)
				}
			}
			for i, cq := range cqs {
				for got := 0; got < each; {
					if err := cq.Wait(ctx(t), 1); err != nil {
						t.Fatal(err)
					}
					n, err := cq.Read(make([]fi.Completion, each))
					if err != nil {
						t.Fatal(i, err)
					}
					got += n
				}
			}
		})
	}
}
