// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The error of an operation in the wrong form names the right one, and that of a message
// without an operation says so.
func TestFormTexts(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	b := make([]byte, 8)
	word := func(op atomic.Op, compare, result []byte) *fi.Msg {
		return &fi.Msg{Buf: b, Compare: compare, Result: result, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: op}
	}
	double := word(atomic.Band, nil, nil)
	double.Datatype = atomic.Double
	for end, err := range map[string]error{
		"base cswap on uint64: the operation takes a comparand: want CompareAtomic":                   f.ep.Atomic(word(atomic.Cswap, nil, nil), 0),
		"compare sum on uint64: the operation takes no comparand: want Atomic or FetchAtomic":         f.ep.CompareAtomic(word(atomic.Sum, b, b), 0),
		"base read on uint64: the operation has a result and takes no comparand: want FetchAtomic":    f.ep.Atomic(word(atomic.Read, nil, nil), 0),
		"base band on double: operation not supported on double: atomic.Valid tells which ones are":   f.ep.Atomic(double, 0),
		"Msg.Result has 0 bytes for uint64[1]: want 8":                                                f.ep.FetchAtomic(word(atomic.Sum, nil, nil), 0),
		"Msg.Compare has 0 bytes for uint64[1]: want 8":                                               f.ep.CompareAtomic(word(atomic.Cswap, nil, b), 0),
		"Msg.Result has 8 bytes, and the form base has no result: want FetchAtomic, or none":          f.ep.Atomic(word(atomic.Sum, nil, b), 0),
		"Msg.Compare has 8 bytes, and the form fetch takes no comparand: want CompareAtomic, or none": f.ep.FetchAtomic(word(atomic.Sum, b, b), 0),
		"min on int8, which both are if they are zero, takes a Count as well":                         f.ep.Atomic(&fi.Msg{Buf: b, Dest: f.dest, Key: 1}, 0),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), end) {
			t.Errorf("%v; want an end of %q", err, end)
		}
	}
	if err := f.ep.Atomic(&fi.Msg{Buf: b, Dest: f.dest, Key: 1, Count: 8}, 0); err != nil {
		t.Errorf("min on int8, with a Count: %v", err)
	}
}

// A completion with an error has a remedy.
func TestCompletionRemedies(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for end, x := range map[string]fi.Msg{
		"unknown, or revoked: look the region up by its name (Endpoint.Lookup)":                                                 {Key: 99},
		"beyond the end of the memory region: want Offset and elements within the Base and the Size that Endpoint.Lookup finds": {Key: 1, Offset: 1 << 16},
		"a multiple of the element's alignment: want a multiple of 8":                                                           {Key: 1, Offset: 3},
	} {
		x.Buf, x.Dest, x.Datatype, x.Op = make([]byte, 8), f.dest, atomic.Uint64, atomic.Sum
		if err := errors.Join(f.ep.Atomic(&x, 0), f.cq.Wait(ctx(t), 1)); err != nil {
			t.Fatal(err)
		}
		if c, _ := f.cq.ReadErr(); c.Err == nil || !strings.HasSuffix(c.Err.Error(), end) {
			t.Errorf("%v; want an end of %q", c.Err, end)
		}
	}
	over, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	counter, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(2)
	for text, err := range map[string]error{
		"xdpfab: the wait for a counter to reach 3, which is at 2 with 0 failures, ended, and what was posted continues: enough": counter.Wait(over, 3),
		"xdpfab: the wait for 4 completions, of which 0 can be read, ended, and what was posted continues: enough":               f.cq.Wait(over, 4),
	} {
		if !errors.Is(err, cause) || err.Error() != text {
			t.Errorf("%v; want %s", err, text)
		}
	}
}
