// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Without a count an operation has as many elements as its buffers hold, and what does
// not fit together is refused as with one.
func TestCountFromBuffers(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	b := func(n int) []byte { return make([]byte, n) }
	type form = func(*xdpfab.Endpoint, *xdpfab.Msg, xdpfab.OpFlags) error
	base, fetch, compare := form((*xdpfab.Endpoint).Atomic), form((*xdpfab.Endpoint).FetchAtomic), form((*xdpfab.Endpoint).CompareAtomic)
	for _, c := range []struct {
		name  string
		post  form
		msg   xdpfab.Msg
		bytes int // of the completion
		want  error
	}{
		{"base", base, xdpfab.Msg{Buf: b(24), Op: xdpfab.Sum}, 24, nil},
		{"fetch", fetch, xdpfab.Msg{Buf: b(16), Result: b(16), Op: xdpfab.Sum}, 16, nil},
		{"read", fetch, xdpfab.Msg{Result: b(32), Op: xdpfab.Read}, 32, nil},
		{"read with a buffer", fetch, xdpfab.Msg{Buf: b(8), Result: b(32), Op: xdpfab.Read}, 32, nil},
		{"compare", compare, xdpfab.Msg{Buf: b(8), Compare: b(8), Result: b(8), Op: xdpfab.Cswap}, 8, nil},
		{"extents", base, xdpfab.Msg{Buf: b(16), RMA: []mr.Extent{{Key: 1, Count: 1}, {Key: 1, Count: 1}}, Op: xdpfab.Sum}, 16, nil},
		{"no buffers", base, xdpfab.Msg{Op: xdpfab.Sum}, 0, xdpfab.ErrCount},
		{"part of an element", base, xdpfab.Msg{Buf: b(7), Op: xdpfab.Sum}, 0, xdpfab.ErrLength},
		{"result too long", fetch, xdpfab.Msg{Buf: b(8), Result: b(16), Op: xdpfab.Sum}, 0, xdpfab.ErrLength},
		{"compare too short", compare, xdpfab.Msg{Buf: b(16), Compare: b(8), Result: b(16), Op: xdpfab.Cswap}, 0, xdpfab.ErrLength},
		{"extents too short", base, xdpfab.Msg{Buf: b(16), RMA: []mr.Extent{{Key: 1, Count: 1}}, Op: xdpfab.Sum}, 0, xdpfab.ErrCount},
	} {
		m := c.msg
		m.Dest, m.Datatype = f.dest, xdpfab.Uint64
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
		xdpfab.OpFlags(0).String():                                  "none",
		(xdpfab.FlagFence | xdpfab.FlagMore).String():               "fence|more",
		(xdpfab.FlagInject | xdpfab.FlagDeliveryComplete).String():  "inject|delivery_complete",
		(xdpfab.FlagFence | 1<<20 | 1<<21).String():                 "fence|0x300000",
		(xdpfab.CompletionAtomic | xdpfab.CompletionWrite).String(): "atomic|write",
		(xdpfab.BindRead | xdpfab.BindWrite | 1<<31).String():       "read|write|0x80000000",
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
		ep, err := a.NewEndpoint(xdpfab.EndpointAttr{Number: xdpfab.AnyNumber, Size: size})
		if _, err2 := a.NewCompletionQueue(xdpfab.CQAttr{Size: size}); (err == nil) != (err2 == nil) {
			t.Errorf("size %d: endpoint %v, completion queue %v", size, err, err2)
		}
		if want == 0 {
			if !errors.Is(err, xdpfab.ErrCount) {
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
		if _, err := a.NewEndpoint(xdpfab.EndpointAttr{Number: 77, InjectSize: n}); !errors.Is(err, xdpfab.ErrTooBig) {
			t.Errorf("%d bytes to inject: %v, want ErrTooBig", n, err)
		}
	}
}

// The two operands of the biggest element can be injected together.
func TestInjectTakesEveryElement(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	size := xdpfab.LongDoubleComplex.Size()
	m := xdpfab.Msg{
		Buf: make([]byte, size), Compare: make([]byte, size), Result: make([]byte, size),
		Dest: f.dest, Key: 1, Datatype: xdpfab.LongDoubleComplex, Op: xdpfab.Cswap,
	}
	if err := f.ep.CompareAtomic(&m, xdpfab.FlagInject); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); c.Err != nil || c.Bytes != size {
		t.Errorf("%+v, want %d bytes", c, size)
	}
}
