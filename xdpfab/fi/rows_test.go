// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Operands stay as they are: an operation of one frame or many writes to its result
// alone.
func TestOperandsStay(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		rng := rand.New(rand.NewPCG(7, 7))
		for _, n := range []int{1, 10, 511} {
			for form, op := range map[atomic.Func]atomic.Op{atomic.Base: atomic.Sum, atomic.Fetch: atomic.Sum, atomic.Compare: atomic.Cswap} {
				m := fi.Msg{Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: op, Count: n, Buf: random(rng, 8*n)}
				if form != atomic.Base {
					m.Result = make([]byte, 8*n)
				}
				if form == atomic.Compare {
					m.Compare = random(rng, 8*n)
				}
				buf, compare := bytes.Clone(m.Buf), bytes.Clone(m.Compare)
				if err := post(f, form, &m); err != nil {
					t.Fatal(err)
				}
				if c := take(t, f); c.Err != nil || !bytes.Equal(m.Buf, buf) || !bytes.Equal(m.Compare, compare) {
					t.Errorf("%v on %d: %v, or an operand has changed", form, n, c.Err)
				}
			}
		}
	})
}

// An endpoint takes as many operations as it has places, though its completion queue has
// room for more. With manual progress none of them ends before the caller looks.
func TestEndpointFull(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 256)
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 8})
	if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(f.cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	posted := 0
	m := fi.Msg{Buf: make([]byte, 16), Count: 2, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	for ; err == nil && posted < 256; posted++ {
		err = ep.Atomic(&m, fi.FlagMore)
	}
	if posted--; !errors.Is(err, fi.ErrAgain) || posted < 8 || posted > 16 {
		t.Fatalf("%d operations, then %v: want 8 to 16, then ErrAgain", posted, err)
	}
	for range posted {
		if c := take(t, f); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if err := ep.Atomic(&m, 0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Objects of one domain cannot be bound to those of another.
func TestForeignObjects(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	av, err1 := f.server.NewAddressVector()
	cq, err2 := f.server.NewCompletionQueue(fi.CQAttr{})
	counter, err3 := f.server.NewCounter()
	ep, err4 := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	region, err5 := f.server.NewRegion("foreign", 64)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	shared, err := f.server.NewSharedReceive(fi.SharedReceiveAttr{Queue: cq})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"vector": ep.Bind(av, 0), "queue": ep.Bind(cq, 0), "queue of receives": ep.Bind(cq, fi.BindRecv),
		"counter": ep.Bind(counter, fi.BindWrite), "counter of peers": ep.Bind(counter, fi.BindRemoteWrite),
		"shared receives": ep.Bind(shared, 0),
		"region":          f.client.BindRegion(region, counter, fi.BindRemoteWrite),
	} {
		if !errors.Is(err, fi.ErrForeign) {
			t.Errorf("%s of another domain: %v", name, err)
		}
	}
	if err := errors.Join(shared.Close(), av.Close(), cq.Close(), counter.Close()); err != nil {
		t.Errorf("bound after all: %v", err)
	}
}
