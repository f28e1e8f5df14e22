// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// signal is one that adds to, or sets, the first word of the fixture's region.
func signal(code atomic.Op, v uint64) *fi.Msg {
	return &fi.Msg{Key: 1, Datatype: atomic.Uint64, Op: code, Buf: u64s(v)}
}

// A write with a signal does both, whatever its length, from one buffer or from pieces,
// with the registrations named or not, and makes one completion.
func TestWriteSignal(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		key := uint64(7)
		m, err := mr.Memfd("long", 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := f.server.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		sum := uint64(0)
		for i, n := range []int{0, 1, 8, 40, 47, 48, 49, 80, 100, 1400, 1500, 3000, 100_000, 1<<20 - 1, 3<<20 + 5} {
			x := fi.RMA{Dest: f.dest, Key: key, Offset: uint64(i), Buf: make([]byte, n), Signal: signal(atomic.Sum, 3), Context: n}
			for j := range x.Buf {
				x.Buf[j] = byte(rng.Uint32())
			}
			want := bytes.Clone(x.Buf)
			if i%2 == 0 {
				x.Incarnation, x.Signal.Incarnation = r.Incarnation(), f.region.Incarnation()
			}
			if i%3 == 0 && n > 0 {
				x.Pieces, x.Buf = [][]byte{x.Buf[:n/2], x.Buf[n/2:]}, nil
			}
			sum += 3
			if n == 100 {
				x.Signal, sum = signal(atomic.Write, 77), 77
			}
			if err := f.ep.Write(&x, 0); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if c := take(t, f); c.Err != nil || c.Context != n || c.Bytes != n || c.Flags != fi.CompletionRMA|fi.CompletionWrite {
				t.Fatalf("%d bytes: %+v", n, c)
			}
			if !bytes.Equal(r.Bytes()[i:i+n], want) {
				t.Errorf("%d bytes: they are not in place", n)
			}
			if got := binary.LittleEndian.Uint64(f.mem); got != sum {
				t.Errorf("%d bytes: the signalled word is %d, want %d", n, got, sum)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Whoever sees the signal sees the data, also of many frames.
func TestWriteSignalComesLast(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		ready, err := f.region.Uint64(0)
		if err != nil {
			t.Fatal(err)
		}
		const n = 20_000
		for round := range uint64(reduced(200, 40)) {
			data := bytes.Repeat([]byte{byte(round + 1)}, n)
			x := fi.RMA{Dest: f.dest, Key: 1, Offset: 64, Buf: data, Signal: signal(atomic.Sum, 1),
				Incarnation: f.region.Incarnation()}
			x.Signal.Incarnation = x.Incarnation
			if err := f.ep.Write(&x, 0); err != nil {
				t.Fatal(err)
			}
			for ready.Load() == round {
				f.client.Progress()
			}
			for i := 8; i < 8+n/8; i++ { // as the owner of the memory reads words that peers write
				w, err := f.region.Uint64(i)
				if err != nil {
					t.Fatal(err)
				}
				if v := w.Load(); byte(v) != byte(round+1) {
					t.Fatalf("round %d: word %d is %#x when the signal has come", round, i, v)
				}
			}
			if c := take(t, f); c.Err != nil {
				t.Fatal(c.Err)
			}
		}
	})
}

// If the write or the signal is refused, neither runs, however long the write is.
func TestWriteSignalRefused(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		for _, n := range []int{8, 100, 60_000} {
			for what, x := range map[string]struct {
				want   error
				change func(x *fi.RMA)
			}{
				"signal without a region": {fi.ErrNoKey, func(x *fi.RMA) { x.Signal.Key = 99 }},
				"signal without a right":  {fi.ErrAccess, func(x *fi.RMA) { x.Signal.Key = 2 }},
				"signal beyond the end":   {fi.ErrOutOfBounds, func(x *fi.RMA) { x.Signal.Offset = 1 << 16 }},
				"signal between words":    {fi.ErrMisaligned, func(x *fi.RMA) { x.Signal.Offset = 4 }},
				"signal of another life":  {fi.ErrPeerRestarted, func(x *fi.RMA) { x.Signal.Incarnation = f.region.Incarnation() + 1 }},
				"write without a region":  {fi.ErrNoKey, func(x *fi.RMA) { x.Key = 99 }},
				"write without a right":   {fi.ErrAccess, func(x *fi.RMA) { x.Key = 2 }},
				"write beyond the end":    {fi.ErrOutOfBounds, func(x *fi.RMA) { x.Offset = uint64(1<<16 - n + 1) }},
			} {
				m := fi.RMA{Dest: f.dest, Key: 1, Offset: 64, Buf: bytes.Repeat([]byte{1}, n), Signal: signal(atomic.Sum, 1)}
				x.change(&m)
				if err := f.ep.Write(&m, 0); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				c := take(t, f)
				if !errors.Is(c.Err, x.want) || !errors.Is(c.Err, fi.ErrNotExecuted) && x.want != fi.ErrPeerRestarted {
					t.Errorf("%d bytes, %s: %v, want %v", n, what, c.Err, x.want)
				}
				if i := bytes.IndexFunc(f.mem, func(r rune) bool { return r != 0 }); i >= 0 {
					t.Fatalf("%d bytes, %s: the byte at %d has changed", n, what, i)
				}
			}
		}
	})
}

// What no target could execute is refused by the post.
func TestWriteSignalNotPosted(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for what, x := range map[string]struct {
		want   error
		change func(x *fi.RMA)
		flags  fi.OpFlags
	}{
		"datatype":  {fi.ErrOpNotSupported, func(x *fi.RMA) { x.Signal.Datatype, x.Signal.Buf = atomic.Uint128, make([]byte, 16) }, 0},
		"operation": {fi.ErrOpNotSupported, func(x *fi.RMA) { x.Signal.Op = atomic.Cswap }, 0},
		"operand":   {fi.ErrLength, func(x *fi.RMA) { x.Signal.Buf = nil }, 0},
		"extents":   {fi.ErrNotImplemented, func(x *fi.RMA) { x.Extents = []mr.Extent{{Key: 1, Count: 8}} }, 0},
		"data":      {fi.ErrBadFlags, func(*fi.RMA) {}, fi.FlagRemoteCQData},
	} {
		m := fi.RMA{Dest: f.dest, Key: 1, Buf: make([]byte, 8), Signal: signal(atomic.Sum, 1)}
		x.change(&m)
		if err := f.ep.Write(&m, x.flags); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", what, err, x.want)
		}
	}
	x := fi.RMA{Dest: f.dest, Key: 1, Buf: make([]byte, 8), Signal: signal(atomic.Sum, 1)}
	if err := f.ep.Read(&x, 0); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("read: %v", err)
	}
}

// A write with a signal allocates nothing, at either side.
func TestWriteSignalDoesNotAllocate(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	x := fi.RMA{Dest: f.dest, Key: 1, Offset: 64, Buf: make([]byte, 8), Signal: signal(atomic.Sum, 1)}
	var c [1]fi.Completion
	one := func() {
		if err := f.ep.Write(&x, 0); err != nil {
			t.Fatal(err)
		}
		for {
			if n, err := f.cq.Read(c[:]); err != nil {
				t.Fatal(err)
			} else if n > 0 {
				return
			}
		}
	}
	for range 50 {
		one()
	}
	if n := testing.AllocsPerRun(200, one); n > 0 {
		t.Errorf("%v allocations an operation", n)
	}
}
