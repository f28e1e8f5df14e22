// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An injected operation leaves operands and extents free: values written over them
// after the call have no effect. Progress is manual, so nothing is sent before.
func TestInjectedExtents(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 512)
	rma := make([]mr.Extent, 4)
	buf := make([]byte, 32)
	const rounds = 200
	for i := range uint64(rounds) {
		for j := range rma {
			rma[j] = mr.Extent{Key: 1, Offset: 8 * (4*i + uint64(j)), Count: 1}
			binary.LittleEndian.PutUint64(buf[8*j:], i+1)
		}
		m := fi.Msg{Buf: buf, Count: 4, Dest: f.dest, Datatype: atomic.Uint64, Op: atomic.Sum, RMA: rma}
		if err := f.ep.Atomic(&m, fi.FlagInject); err != nil {
			t.Fatal(err)
		}
		for j := range rma {
			rma[j] = mr.Extent{Key: 99, Offset: 1 << 15, Count: 7}
			binary.LittleEndian.PutUint64(buf[8*j:], 1<<40)
		}
	}
	for range rounds {
		if c := take(t, f); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	for i := range uint64(rounds) {
		for j := range uint64(4) {
			if got := binary.LittleEndian.Uint64(f.mem[8*(4*i+j):]); got != i+1 {
				t.Fatalf("word %d: %d, want %d", 4*i+j, got, i+1)
			}
		}
	}
}

// An injected operation allocates nothing, once the entries of the ring have memory
// for extents, be they as many as a frame holds.
func TestInjectedExtentsDoNotAllocate(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 16)
	const full = 182
	rma := make([]mr.Extent, full)
	for i := range rma {
		rma[i] = mr.Extent{Key: 1, Offset: uint64(8 * i), Count: 1}
	}
	c, background, result := make([]fi.Completion, 1), context.Background(), make([]byte, 8*full)
	for _, words := range []int{2, full} {
		m := fi.Msg{Result: result[:8*words], Count: words, Dest: f.dest, Datatype: atomic.Uint64, Op: atomic.Read, RMA: rma[:words]}
		round := func() {
			if err := errors.Join(f.ep.FetchAtomic(&m, fi.FlagInject), f.cq.Wait(background, 1)); err != nil {
				t.Fatal(err)
			}
			if n, err := f.cq.Read(c); n != 1 || err != nil || c[0].Err != nil {
				t.Fatal(n, err, c[0].Err)
			}
		}
		for range 2000 {
			round()
		}
		if n := testing.AllocsPerRun(2000, round); n >= 1 {
			t.Errorf("%v allocations an operation on %d words, want 0", n, words)
		}
	}
}

// A poster that changes the counts of extents in flight gets an operation on other
// elements or a failure, and no crash; what comes afterwards is not affected.
func TestExtentsChangedInFlight(t *testing.T) {
	for name, change := range map[string]func(rma []mr.Extent){
		"more":     func(rma []mr.Extent) { rma[0].Count, rma[1].Count = 1<<31, 1<<32-1 },
		"fewer":    func(rma []mr.Extent) { rma[0].Count, rma[2].Count = 1, 1 },
		"none":     func(rma []mr.Extent) { clear(rma) },
		"one by 1": func(rma []mr.Extent) { rma[0].Count = 1999; rma[1].Count = 2001 },
	} {
		for _, begun := range []bool{false, true} {
			f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
			rma := []mr.Extent{{Key: 1, Count: 2000}, {Key: 1, Offset: 16000, Count: 2000}, {Key: 1, Offset: 32000, Count: 2000}}
			m := fi.Msg{Buf: make([]byte, 8*6000), Count: 6000, Dest: f.dest, Datatype: atomic.Uint64, Op: atomic.Sum, RMA: rma}
			if begun { // a session is open, and part of the operation is sent
				if err := f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
					t.Fatal(err)
				}
				take(t, f)
			}
			if err := f.ep.Atomic(&m, 0); err != nil {
				t.Fatal(err)
			}
			if begun {
				f.client.Progress()
			}
			change(rma)
			c := take(t, f)
			t.Logf("%s, begun %v: %v", name, begun, c.Err)
			if err := f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Fatal(err)
			}
			if c := take(t, f); c.Err != nil {
				t.Errorf("%s: the operation after it: %v", name, c.Err)
			}
			if errors.Is(c.Err, fi.ErrProtocol) {
				t.Errorf("%s: malformed frames were sent: %v", name, c.Err)
			}
		}
	}
}
