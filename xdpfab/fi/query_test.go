// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A query takes the flag of fi_query_atomic that is no argument, and no other. What has a
// tag is as long as a frame, and is the poller's.
func TestQueryAtomic(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	for _, flags := range []fi.OpFlags{fi.FlagInject, fi.FlagTagged | fi.FlagFence, 1 << 40} {
		_, err := f.client.QueryAtomic(atomic.Base, atomic.Uint64, atomic.Sum, flags)
		for _, want := range []error{fi.ErrBadFlags, fi.EBADFLAGS} {
			if !errors.Is(err, want) {
				t.Errorf("%v: %v, want %v", flags, err, want)
			}
		}
	}
	for _, form := range []atomic.Func{atomic.Base, atomic.Fetch, atomic.Compare} {
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			for op := range atomic.Op(atomic.NumOps) {
				plain, err1 := f.client.QueryAtomic(form, dt, op, 0)
				tagged, err2 := f.client.QueryAtomic(form, dt, op, fi.FlagTagged)
				plain.Count, plain.Resident = tagged.Count, false
				if tagged != plain || (err1 == nil) != (err2 == nil) || err1 != nil && !errors.Is(err2, fi.ErrOpNotSupported) {
					t.Fatalf("%v %v %v: with a tag %+v, %v; without %+v, %v", form, dt, op, tagged, err2, plain, err1)
				}
			}
		}
	}
	tagged, err := f.client.QueryAtomic(atomic.Base, atomic.Uint64, atomic.Sum, fi.FlagTagged)
	if tagged.Count < 100 || tagged.Count > 187 || err != nil { // in a frame of 1500 bytes
		t.Errorf("with a tag %+v, %v", tagged, err)
	}
}

// What a query tells of elements is what the target does: it refuses an address that is
// not aligned, updates elements in ascending order, and is atomic against its own CPUs
// where it says so.
func TestQueryTellsHow(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		ep, cq := b.endpoint(fi.EndpointAttr{})
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			attr, err := b.client.QueryAtomic(atomic.Base, dt, atomic.Write, 0)
			b.ok(err)
			if coherent := dt != atomic.LongDoubleComplex; coherent != (attr.CoherentAlign == attr.Size) || !coherent && attr.CoherentAlign != 0 {
				b.Errorf("%v: %+v", dt, attr)
			}
			if attr.Resident != (dt <= atomic.Uint64) || !attr.Order.RAW.Allows(1<<40) || !attr.Order.WAR.Allows(1<<40) || !attr.Order.WAW.Allows(1<<40) {
				b.Errorf("%v: %+v", dt, attr)
			}
			for offset, want := range map[int]error{attr.Align: nil, attr.Align / 2: fi.ErrMisaligned} {
				if attr.Align == 1 && want != nil {
					continue
				}
				m := &fi.Msg{Buf: make([]byte, attr.Size), Dest: b.dest, Key: b.key, Offset: uint64(offset), Datatype: dt, Op: atomic.Write}
				b.ok(ep.Atomic(m, 0))
				if done := b.take(cq, 1); !errors.Is(done[0].Err, want) {
					b.Errorf("%v at %d: %v, want %v", dt, offset, done[0].Err, want)
				}
			}
		}
		// All elements are the same word: each finds what the one before it has left.
		const n = 500
		m := &fi.Msg{Buf: make([]byte, 8*n), Result: make([]byte, 8*n), Dest: b.dest, Datatype: atomic.Uint64, Op: atomic.Sum}
		for i := range n {
			m.Buf[8*i] = 1
			m.RMA = append(m.RMA, mr.Extent{Key: b.key, Offset: 800, Count: 1})
		}
		b.ok(ep.FetchAtomic(m, 0))
		b.take(cq, 1)
		for i := range n {
			if got := int(m.Result[8*i]) + int(m.Result[8*i+1])<<8; got != i {
				b.Fatalf("element %d found %d", i, got)
			}
		}
	})
	f := setUp(t, fi.DomainAttr{}, 64)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	own, err := f.region.Uint64(5)
	b.ok(err)
	const each = 2000
	var mine sync.WaitGroup
	mine.Go(func() {
		for range each {
			own.Add(1)
		}
	})
	ep, cq := b.endpoint(fi.EndpointAttr{})
	for range each / 50 {
		for range 50 {
			b.ok(ep.Atomic(b.add(5), 0))
		}
		b.take(cq, 50)
	}
	mine.Wait()
	if got := own.Load(); got != 2*each {
		t.Errorf("%d, want %d", got, 2*each)
	}
}
