// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// bench is a client and a server with a region, on a Pipe or a veth pair, for tests of
// what endpoints are made of.
type bench struct {
	*testing.T
	client, server *xdpfab.Domain
	av             *fi.AddressVector
	dest           fi.Address
	key            uint64
}

// onEveryWire runs a test on a Pipe and on a veth pair, with both kinds of progress.
func onEveryWire(t *testing.T, f func(b *bench)) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		t.Run("pipe", func(t *testing.T) {
			x := setUpBoth(t, a, fi.DomainAttr{Attach: a.Attach}, 64)
			f(&bench{t, x.client, x.server, x.av, x.dest, 1})
		})
		if a.Attach == fi.AttachAlways {
			return // test/e2e has daemons
		}
		t.Run("veth", func(t *testing.T) {
			a, b, _ := onVeth(t, 1, a, fi.DomainAttr{})
			f(benchOf(t, a, b))
		})
	})
}

// benchOf is a bench on domains that onVeth has opened.
func benchOf(t *testing.T, a, b *xdpfab.Domain) *bench {
	x := &bench{T: t, client: a, server: b}
	x.av, _ = a.NewAddressVector()
	dest, err := x.av.Insert(ctx(t), b.Name(0))
	x.ok(err)
	p, err := a.Dial(ctx(t), b.Name(0))
	x.ok(err)
	r, err := p.Lookup(ctx(t), "r")
	x.ok(errors.Join(err, p.Close()))
	x.dest, x.key = dest, r.Key
	return x
}

// ok ends the test at an error.
func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// endpoint makes an endpoint with a completion queue.
func (b *bench) endpoint(attr fi.EndpointAttr, bind ...*fi.Counter) (*fi.Endpoint, *fi.CompletionQueue) {
	b.Helper()
	cq, err := b.client.NewCompletionQueue(fi.CQAttr{Size: attr.Size})
	b.ok(err)
	attr.Number = fi.AnyNumber
	ep, err := b.client.NewEndpoint(attr)
	b.ok(err)
	b.ok(errors.Join(ep.Bind(b.av, 0), ep.Bind(cq, 0)))
	for _, c := range bind {
		b.ok(ep.Bind(c, fi.BindRead|fi.BindWrite))
	}
	b.ok(ep.Enable())
	return ep, cq
}

// counter makes a counter.
func (b *bench) counter() *fi.Counter {
	b.Helper()
	c, err := b.client.NewCounter()
	b.ok(err)
	return c
}

// add is an operation that adds 1 to the word at index i and, as a fetch, has the value
// before in Result.
func (b *bench) add(i int) *fi.Msg {
	one := make([]byte, 8)
	one[0] = 1
	return &fi.Msg{Buf: one, Dest: b.dest, Key: b.key, Offset: uint64(8 * i), Datatype: atomic.Uint64, Op: atomic.Sum}
}

func (b *bench) fetchAdd(i int) *fi.Msg {
	m := b.add(i)
	m.Result = make([]byte, 8)
	return m
}

// before is the value that a fetch has returned.
func before(m *fi.Msg) uint64 { return binary.LittleEndian.Uint64(m.Result) }

// load reads the word at index i.
func (b *bench) load(ep *fi.Endpoint, cq *fi.CompletionQueue, i int) uint64 {
	b.Helper()
	m := b.fetchAdd(i)
	m.Op = atomic.Read
	b.ok(ep.FetchAtomic(m, 0))
	b.take(cq, 1)
	return before(m)
}

// take reads n completions, which may be failures.
func (b *bench) take(cq *fi.CompletionQueue, n int) (list []fi.Completion) {
	b.Helper()
	for len(list) < n {
		b.ok(cq.Wait(ctx(b.T), 1))
		c := make([]fi.Completion, n-len(list))
		got, err := cq.Read(c)
		if errors.Is(err, fi.ErrErrorPending) {
			c[0], _ = cq.ReadErr()
			got, err = 1, nil
		}
		b.ok(err)
		list = append(list, c[:got]...)
	}
	return list
}

// nothing checks that nothing has completed.
func (b *bench) nothing(cq *fi.CompletionQueue) {
	b.Helper()
	b.client.Progress()
	var c [1]fi.Completion
	if n, err := cq.Read(c[:]); n != 0 || err != nil {
		b.Fatalf("%d completions, %v: want nothing", n, err)
	}
}

// counts waits until a counter has a value, and checks that it has no other.
func (b *bench) counts(what string, c *fi.Counter, value, errs uint64) {
	b.Helper()
	testnet.Eventually(b.T, what, func() bool { return c.Read() == value && c.ReadErr() == errs })
}
