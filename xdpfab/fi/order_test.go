// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// addends is how many words an operation adds to: so many that it takes most of a frame,
// and many frames are in flight however fast the nodes are.
const addends = 150

// adder posts fetch-adds of 1 to words of its own, as many at a time as fit, by an
// endpoint that keeps an order or none. Every hundredth operation is a fenced read.
type adder struct {
	ep    *fi.Endpoint
	cq    *fi.CompletionQueue
	msg   fi.Msg
	step  func()   // lets the target make progress
	found [][]byte // by operation, in the order posted; the first word's value comes first
	order []int    // in which they completed
}

func newAdder(t *testing.T, d *xdpfab.Domain, order fi.Order, peer string, key uint64, place int, step func()) *adder {
	t.Helper()
	av, err := d.NewAddressVector()
	a := &adder{step: step}
	if err == nil {
		a.cq, err = d.NewCompletionQueue(fi.CQAttr{Size: 256})
	}
	if err == nil {
		a.ep, err = d.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 256, MsgOrder: order})
	}
	if err == nil {
		err = errors.Join(a.ep.Bind(av, 0), a.ep.Bind(a.cq, 0), a.ep.Enable())
	}
	if err != nil {
		t.Fatal(err)
	}
	a.msg = fi.Msg{Key: key, Offset: uint64(8 * addends * place), Datatype: atomic.Uint64}
	if a.msg.Dest, err = av.Insert(ctx(t), peer); err != nil {
		t.Fatal(err)
	}
	return a
}

// fenced reports whether operation i is a fenced read.
func fenced(i int) bool { return i%100 == 99 }

// post posts the next operation, and returns false if there is no room.
func (a *adder) post(t *testing.T) bool {
	t.Helper()
	i := len(a.found)
	m := a.msg
	m.Context, m.Result, m.Op, m.Buf = i, make([]byte, 8*addends), atomic.Sum, bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, addends)
	var flags fi.OpFlags
	if fenced(i) {
		m.Op, m.Buf, flags = atomic.Read, nil, fi.FlagFence
	}
	switch err := a.ep.FetchAtomic(&m, flags); {
	case errors.Is(err, fi.ErrAgain):
		return false
	case err != nil:
		t.Fatal(err)
	}
	a.found = append(a.found, m.Result)
	return true
}

// collect takes what has completed.
func (a *adder) collect(t *testing.T) {
	t.Helper()
	var batch [64]fi.Completion
	a.step()
	n, err := a.cq.Read(batch[:])
	if err != nil {
		c, _ := a.cq.ReadErr()
		t.Fatal(err, c.Err)
	}
	for _, c := range batch[:n] {
		a.order = append(a.order, c.Context.(int))
	}
}

// check fails the test unless each addition ran once, and each fenced read found all
// that were posted before it. It returns how many additions found a value that was not
// the next one in the order posted, and how many operations completed behind a later one.
func (a *adder) check(t *testing.T) (early, behind int) {
	t.Helper()
	var values []uint64
	for i, b := range a.found {
		v := binary.LittleEndian.Uint64(b)
		next := uint64(i - i/100)
		switch {
		case !fenced(i):
			if values = append(values, v); v != next {
				early++
			}
		case v < next:
			t.Errorf("fenced read %d found %d, want at least %d", i, v, next)
		}
	}
	slices.Sort(values)
	for i, v := range values {
		if v != uint64(i) {
			t.Fatalf("the additions found %d where %d is due: one ran twice, or not at all", v, i)
		}
	}
	latest := -1
	for _, i := range a.order {
		if i < latest {
			behind++
		}
		latest = max(latest, i)
	}
	return early, behind
}

// run posts so many operations more, and waits for all.
func (a *adder) run(t *testing.T, times int) {
	t.Helper()
	times += len(a.found)
	for latest, done := time.Now(), 0; len(a.order) < times; a.collect(t) {
		for len(a.found) < times && a.post(t) {
		}
		if len(a.order) > done {
			latest, done = time.Now(), len(a.order)
		}
		if time.Since(latest) > testnet.Patience {
			t.Fatalf("%d of %d operations have completed", done, times)
		}
	}
}

// addBoth has an endpoint that keeps the order, and then one that keeps none, add a
// number of times while packets get lost, and checks what each promises. If the test
// itself steps the target, the second goes on until an operation has run, and one has
// completed, ahead of another. Otherwise that cannot be had for certain: where answers
// take long, since the machine is busy, one frame at a time is in flight.
func addBoth(t *testing.T, d *xdpfab.Domain, peer string, key uint64, times int, step func()) {
	t.Helper()
	certain := step != nil
	if !certain {
		step = func() {}
	}
	ordered := newAdder(t, d, 0, peer, key, 0, step)
	ordered.run(t, times)
	if early, _ := ordered.check(t); early > 0 {
		t.Errorf("%d operations ran out of order", early)
	}
	unordered := newAdder(t, d, fi.OrderNone, peer, key, 1, step)
	if !certain {
		unordered.run(t, times)
		early, behind := unordered.check(t)
		t.Logf("%d operations ran, and %d completed, ahead of others", early, behind)
		return
	}
	for rounds, early, behind := 0, 0, 0; early == 0 || behind == 0; early, behind = unordered.check(t) {
		if unordered.run(t, times); rounds == 100 {
			t.Fatalf("%d operations ran, and %d completed, ahead of others: want some, since packets get lost", early, behind)
		}
		rounds++
	}
}

// With losses on a real interface, each operation of an endpoint that needs no order runs
// once, whether it passes others or not, and fences hold.
func TestVethUnordered(t *testing.T) {
	w := faultwire.New(t, faultwire.Options{Seed: 1})
	server := serveOn(t, w.B)
	client := openOn(t, w.A, fi.DomainAttr{Progress: fi.ProgressManual})
	p, err := client.Dial(ctx(t), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	w.SetBoth(faultwire.Faults{Loss: 0.1, Duplicate: 0.05})
	addBoth(t, client, server.Name(0), r.Key, 200, nil)
	if s := w.Stats(); s.Total(faultwire.Lost) == 0 || s.Total(faultwire.Duplicated) == 0 {
		t.Errorf("the wire was too good: %v", s)
	}
}

// The same on a Pipe, which also reorders and corrupts packets.
func TestUnordered(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, a, a, 64)
		faults := fi.Faults{Loss: 0.1, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.05}
		if err := errors.Join(f.client.SetFaults(faults), f.server.SetFaults(faults)); err != nil {
			t.Fatal(err)
		}
		var step func()
		if a.Progress == fi.ProgressManual {
			step = func() { f.server.Progress() }
		}
		addBoth(t, f.client, f.server.Name(0), 1, reduced(500, 100), step)
	})
}

// What an endpoint is asked for, and what is then in force: all orders or none.
func TestMsgOrder(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for asked, want := range map[fi.Order]fi.Order{
		0: allOrders, fi.OrderAtomicWAW: allOrders, fi.OrderRMAWAW | fi.OrderRAR: allOrders, fi.OrderSAS: allOrders, allOrders: allOrders, fi.OrderNone: fi.OrderNone,
	} {
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, MsgOrder: asked})
		if err != nil {
			t.Fatal(err)
		}
		i, sizes := ep.Info(), fi.OrderSizes{RAW: fi.Unlimited, WAR: fi.Unlimited, WAW: fi.Unlimited}
		if want == fi.OrderNone {
			sizes = fi.OrderSizes{}
		}
		if got := ep.Attr().MsgOrder; got != want || i.Transmit.MsgOrder != want || i.Endpoint.AtomicOrder != sizes || i.Endpoint.RMAOrder != sizes || i.EndpointAttr().MsgOrder != want {
			t.Errorf("%v is asked for: %v by the attributes; by the info %v, sizes %v, attributes with %v; want %v, sizes %v",
				asked, got, i.Transmit.MsgOrder, i.Endpoint.AtomicOrder, i.EndpointAttr().MsgOrder, want, sizes)
		}
	}
	for _, bad := range []fi.Order{1 << 20, 1<<20 | fi.OrderSAS, fi.OrderNone | fi.OrderAtomicWAW} {
		_, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, MsgOrder: bad})
		if !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%v: %v, want %v", fmt.Sprintf("%#x", uint32(bad)), err, fi.ErrNotImplemented)
		}
	}
}
