// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// fi_atomic(3): for a read the operand buffer is ignored, whatever it is.
func TestReadIgnoresBuf(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	binary.LittleEndian.PutUint64(f.mem, 4711)
	for _, buf := range [][]byte{nil, {1}, make([]byte, 8), make([]byte, 400)} {
		for _, flags := range []fi.OpFlags{0, fi.FlagInject} {
			result := make([]byte, 8)
			m := fi.Msg{Buf: buf, Result: result, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Read}
			if err := f.ep.FetchAtomic(&m, flags); err != nil {
				t.Fatalf("buffer of %d bytes, flags %#x: %v", len(buf), flags, err)
			}
			if c := take(t, f); c.Err != nil || binary.LittleEndian.Uint64(result) != 4711 {
				t.Errorf("buffer of %d bytes: %v, %x", len(buf), c.Err, result)
			}
		}
	}
}

// take waits for one completion, good or bad.
func take(t *testing.T, f *fixture) fi.Completion {
	t.Helper()
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	var c [1]fi.Completion
	if _, err := f.cq.Read(c[:]); errors.Is(err, fi.ErrErrorPending) {
		c[0], _ = f.cq.ReadErr()
	}
	return c[0]
}

// With manual progress, a caller that polls the number of failures alone sees them.
func TestCounterReadErrMakesProgress(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	counter, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(counter, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 99, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	for end := ctx(t); counter.ReadErr() == 0; {
		if end.Err() != nil {
			t.Fatal("the failure never shows")
		}
	}
}

// A region registered with virtual addresses is reached by name like any other.
func TestVirtualRegionByName(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	r, err := f.server.Register(m, mr.Options{Name: "virtual", Virtual: true, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := p.Lookup(ctx(t), "virtual")
	if err != nil || entry.Base != r.Base() || entry.Base == 0 {
		t.Fatalf("%+v, %v: want base %#x", entry, err, r.Base())
	}
	if entry, err := p.Lookup(ctx(t), "r"); err != nil || entry.Base != 0 {
		t.Fatalf("%+v, %v: want base 0", entry, err)
	}

	w, err := xdpfab.Word[uint64](ctx(t), p, "virtual", 3)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(ctx(t), 5); err != nil || n != 5 || binary.LittleEndian.Uint64(r.Bytes()[24:]) != 5 {
		t.Errorf("word: %d, %v", n, err)
	}
	if _, err := xdpfab.Word[uint64](ctx(t), p, "virtual", 512); !errors.Is(err, fi.ErrOutOfBounds) {
		t.Errorf("word beyond the end: %v", err)
	}

	v, err := xdpfab.Vector[uint32](ctx(t), p, "virtual")
	if err != nil {
		t.Fatal(err)
	}
	at, sums := []uint64{0, 6, 1023, 6}, make([]uint32, 4)
	if err := v.Add(ctx(t), at, []uint32{1, 2, 3, 4}, sums); err != nil || !slices.Equal(sums, []uint32{1, 7, 3, 11}) {
		t.Errorf("vector: %v, %v", sums, err)
	}

	// By address, as a caller posts that was told the address.
	b := binary.LittleEndian.AppendUint64(nil, 9)
	if err := f.ep.Atomic(&fi.Msg{Buf: b, Count: 1, Dest: f.dest, Offset: r.Base() + 4096 - 16, Key: r.Key(), Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); c.Err != nil || binary.LittleEndian.Uint64(r.Bytes()[4096-16:]) != 9 {
		t.Errorf("by address: %v", c.Err)
	}
	if err := f.ep.Atomic(&fi.Msg{Buf: b, Count: 1, Dest: f.dest, Key: r.Key(), Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); !errors.Is(c.Err, fi.ErrOutOfBounds) {
		t.Errorf("offset 0 of a virtual region: %v, want ErrOutOfBounds", c.Err)
	}
}
