// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Without a count an operation has as many elements as its buffers hold, and what does
// not fit together is refused as with one.
func TestCountFromBuffers(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	b := func(n int) []byte { return make([]byte, n) }
	type form = func(*fi.Endpoint, *fi.Msg, fi.OpFlags) error
	base, fetch, compare := form((*fi.Endpoint).Atomic), form((*fi.Endpoint).FetchAtomic), form((*fi.Endpoint).CompareAtomic)
	for _, c := range []struct {
		name  string
		post  form
		msg   fi.Msg
		bytes int // of the completion
		want  error
	}{
		{"base", base, fi.Msg{Buf: b(24), Op: atomic.Sum}, 24, nil},
		{"fetch", fetch, fi.Msg{Buf: b(16), Result: b(16), Op: atomic.Sum}, 16, nil},
		{"read", fetch, fi.Msg{Result: b(32), Op: atomic.Read}, 32, nil},
		{"read with a buffer", fetch, fi.Msg{Buf: b(8), Result: b(32), Op: atomic.Read}, 32, nil},
		{"compare", compare, fi.Msg{Buf: b(8), Compare: b(8), Result: b(8), Op: atomic.Cswap}, 8, nil},
		{"extents", base, fi.Msg{Buf: b(16), RMA: []mr.Extent{{Key: 1, Count: 1}, {Key: 1, Count: 1}}, Op: atomic.Sum}, 16, nil},
		{"no buffers", base, fi.Msg{Op: atomic.Sum}, 0, fi.ErrCount},
		{"part of an element", base, fi.Msg{Buf: b(7), Op: atomic.Sum}, 0, fi.ErrLength},
		{"result too long", fetch, fi.Msg{Buf: b(8), Result: b(16), Op: atomic.Sum}, 0, fi.ErrLength},
		{"compare too short", compare, fi.Msg{Buf: b(16), Compare: b(8), Result: b(16), Op: atomic.Cswap}, 0, fi.ErrLength},
		{"extents too short", base, fi.Msg{Buf: b(16), RMA: []mr.Extent{{Key: 1, Count: 1}}, Op: atomic.Sum}, 0, fi.ErrCount},
	} {
		m := c.msg
		m.Dest, m.Datatype = f.dest, atomic.Uint64
		if m.RMA == nil {
			m.Key = 1
		}
		err := c.post(f.ep, &m, 0)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil {
			continue
		}
		if got := take(t, f); got.Err != nil || got.Bytes != c.bytes {
			t.Errorf("%s: %d bytes, %v: want %d", c.name, got.Bytes, got.Err, c.bytes)
		}
		if m.Count != 0 {
			t.Errorf("%s: the message has been changed", c.name)
		}
	}
}

func TestFlagStrings(t *testing.T) {
	for got, want := range map[string]string{
		fi.OpFlags(0).String():                              "none",
		(fi.FlagFence | fi.FlagMore).String():               "more|fence",
		(fi.FlagInject | fi.FlagDeliveryComplete).String():  "inject|delivery_complete",
		(fi.FlagFence | 1<<40 | 1<<41).String():             "fence|0x30000000000",
		(fi.CompletionAtomic | fi.CompletionWrite).String(): "atomic|write",
		(fi.BindRead | fi.BindWrite | 1<<31).String():       "read|write|0x80000000",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The attributes of an endpoint in force are the true ones, and queues of both kinds are
// rounded up by one rule.
func TestEndpointAttr(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer b.CloseAll()
	defer a.CloseAll()
	for size, want := range map[int]int{0: 1024, 1: 2, 2: 2, 100: 128, 4096: 4096, -1: 0, 1<<20 + 1: 0} {
		ep, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: size})
		if _, err2 := a.NewCompletionQueue(fi.CQAttr{Size: size}); (err == nil) != (err2 == nil) {
			t.Errorf("size %d: endpoint %v, completion queue %v", size, err, err2)
		}
		if want == 0 {
			if !errors.Is(err, fi.ErrCount) {
				t.Errorf("size %d: %v, want ErrCount", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ep.Attr(); got.Size != want || got.Number != int(ep.Number()) || got.InjectSize != 80 {
			t.Errorf("size %d: %+v, want size %d", size, got, want)
		}
	}
	for _, n := range []int{-1, 81} {
		if _, err := a.NewEndpoint(fi.EndpointAttr{Number: 77, InjectSize: n}); !errors.Is(err, fi.ErrTooBig) {
			t.Errorf("%d bytes to inject: %v, want ErrTooBig", n, err)
		}
	}
}

// The two operands of the biggest element can be injected together.
func TestInjectTakesEveryElement(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	size := atomic.LongDoubleComplex.Size()
	m := fi.Msg{
		Buf: make([]byte, size), Compare: make([]byte, size), Result: make([]byte, size),
		Dest: f.dest, Key: 1, Datatype: atomic.LongDoubleComplex, Op: atomic.Cswap,
	}
	if err := f.ep.CompareAtomic(&m, fi.FlagInject); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); c.Err != nil || c.Bytes != size {
		t.Errorf("%+v, want %d bytes", c, size)
	}
}
