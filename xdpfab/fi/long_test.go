// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// longBuffer is longer than the memory that a guest shares with its host.
const longBuffer = 20 << 20

// long is a fixture with a region of many bytes, whose owner has counters of it.
type long struct {
	*fixture
	mem           []byte
	reads, writes *fi.Counter
}

func newLong(t *testing.T, attr fi.DomainAttr, size int) *long {
	f := setUp(t, attr, 64)
	m, err := mr.Alloc(size, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := uint64(3)
	r, err := f.server.Register(m, mr.Options{Key: &key, Length: size, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	c := counters(t, f.server, 2)
	if err := errors.Join(f.server.BindRegion(r, c[0], fi.BindRemoteRead), f.server.BindRegion(r, c[1], fi.BindRemoteWrite)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.client.CloseAll(), f.server.CloseAll(), m.Close()); err != nil {
			t.Error(err)
		}
	})
	return &long{f, m.Bytes()[:size], c[0], c[1]}
}

// post posts an operation of a kind on n bytes from an offset on; n is a multiple of 8.
func (l *long) post(kind string, offset uint64, buf, result []byte, flags fi.OpFlags) error {
	x := fi.RMA{Buf: buf, Dest: l.dest, Key: 3, Offset: offset, Data: 7}
	m := fi.Msg{Buf: buf, Dest: l.dest, Key: 3, Offset: offset, Datatype: atomic.Uint64, Op: atomic.Sum, Data: 7}
	switch kind {
	case "write":
		return l.ep.Write(&x, flags)
	case "read":
		x.Buf = result
		return l.ep.Read(&x, flags)
	case "array":
		return l.ep.Atomic(&m, flags)
	}
	m.Result = result
	return l.ep.FetchAtomic(&m, flags)
}

// onBothWays runs a test without a host and through one.
func onBothWays(t *testing.T, f func(t *testing.T, a fi.DomainAttr)) {
	t.Run("direct", func(t *testing.T) { f(t, fi.DomainAttr{}) })
	t.Run("guest", func(t *testing.T) { f(t, fi.DomainAttr{Attach: fi.AttachAlways}) })
}

// An operation of any length is one operation, also that of a guest: if its last element
// is out of bounds it changes nothing, and otherwise the owner of the memory counts it
// once.
func TestLongOperations(t *testing.T) {
	onBothWays(t, func(t *testing.T, attr fi.DomainAttr) {
		sizes := []int{512 << 10, 1 << 20, 1<<20 + 8, 8<<20 + 8}
		if testing.Short() {
			sizes = []int{1<<20 + 8}
		}
		most := slices.Max(sizes)
		l := newLong(t, attr, most)
		rng := rand.New(rand.NewPCG(1, 2))
		buf := random(rng, most)
		copy(l.mem, random(rng, most))
		result := make([]byte, most)
		var reads, writes uint64
		for _, kind := range []string{"write", "read", "array", "fetch"} {
			for _, n := range sizes {
				what := fmt.Sprintf("%s of %d bytes", kind, n)
				before := bytes.Clone(l.mem)
				if err := l.post(kind, uint64(most-n+8), buf[:n], result[:n], 0); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if c := take(t, l.fixture); !errors.Is(c.Err, fi.ErrNotExecuted) || !errors.Is(c.Err, fi.ErrOutOfBounds) {
					t.Errorf("%s beyond the end: %v, want not executed, out of bounds", what, c.Err)
				}
				if !bytes.Equal(l.mem, before) {
					t.Errorf("%s was refused, and has changed memory", what)
				}
				at := most - n
				if err := l.post(kind, uint64(at), buf[:n], result[:n], 0); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				done(t, l.fixture)
				want := bytes.Clone(before)
				switch kind {
				case "write":
					copy(want[at:], buf[:n])
				case "array", "fetch":
					add64(want[at:], buf[:n])
				}
				if !bytes.Equal(l.mem, want) {
					t.Errorf("%s: the memory is wrong", what)
				}
				if kind == "read" || kind == "fetch" {
					reads++
					if !bytes.Equal(result[:n], before[at:]) {
						t.Errorf("%s: the result is wrong", what)
					}
				} else {
					writes++
				}
				if r, w := l.reads.Read(), l.writes.Read(); r != reads || w != writes {
					t.Errorf("after %s the owner has counted %d reads and %d writes, want %d and %d", what, r, w, reads, writes)
				}
			}
		}
	})
}

// add64 adds elements of 8 bytes to others.
func add64(to, b []byte) {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(to[i:])+binary.LittleEndian.Uint64(b[i:]))
	}
}

// What is longer than all memory that a guest shares with its host is possible as well:
// with data, of which the target has one event, on millions of extents, and as messages.
func TestLongerThanTheArena(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of megabytes take long")
	}
	l := newLong(t, fi.DomainAttr{Attach: fi.AttachAlways}, longBuffer)
	to := newTarget(t, l.server, 64)
	dest, err := l.av.Insert(ctx(t), to.name)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	buf, into := random(rng, longBuffer), make([]byte, longBuffer)
	l.dest = dest
	for _, kind := range []string{"write", "array"} {
		want := bytes.Clone(buf)
		if kind == "array" {
			add64(want, buf)
		}
		if err := l.post(kind, 0, buf, nil, fi.FlagRemoteCQData); err != nil {
			t.Fatal(err)
		}
		done(t, l.fixture)
		if c := to.next(t); c.Data != 7 || c.Err != nil || c.Bytes != longBuffer || !bytes.Equal(l.mem, want) {
			t.Errorf("%s with data: %+v, memory right: %t", kind, c, bytes.Equal(l.mem, want))
		}
	}
	const words = 2 << 20
	x := fi.Msg{Dest: dest, Datatype: atomic.Uint64, Op: atomic.Sum, Count: words, Buf: buf[:8*words], Result: into[:8*words]}
	for i := range words {
		x.RMA = append(x.RMA, mr.Extent{Key: 3, Offset: uint64(8 * (words - 1 - i)), Count: 1})
	}
	before := bytes.Clone(l.mem)
	if err := l.ep.FetchAtomic(&x, 0); err != nil {
		t.Fatal(err)
	}
	done(t, l.fixture)
	for i := range words {
		at := 8 * (words - 1 - i)
		if binary.LittleEndian.Uint64(into[8*i:]) != binary.LittleEndian.Uint64(before[at:]) || binary.LittleEndian.Uint64(l.mem[at:]) != binary.LittleEndian.Uint64(before[at:])+binary.LittleEndian.Uint64(buf[8*i:]) {
			t.Fatalf("extent %d: found %d, memory %d", i, binary.LittleEndian.Uint64(into[8*i:]), binary.LittleEndian.Uint64(l.mem[at:]))
		}
	}
	for _, tagged := range []bool{false, true} {
		clear(into)
		m := fi.Message{Buf: buf, Dest: dest, Tag: 5, Data: 9}
		if tagged {
			err = errors.Join(to.ep.ReceiveTagged(&fi.Receive{Buf: into, Tag: 5}, 0), l.ep.SendTagged(&m, fi.FlagRemoteCQData))
		} else {
			err = errors.Join(to.ep.Receive(&fi.Receive{Buf: into}, 0), l.ep.Send(&m, fi.FlagRemoteCQData))
		}
		if err != nil {
			t.Fatal(err)
		}
		done(t, l.fixture)
		if c := to.next(t); c.Err != nil || c.Bytes != longBuffer || c.Data != 9 || !bytes.Equal(into, buf) {
			t.Errorf("message, tagged %t: %+v, bytes right: %t", tagged, c, bytes.Equal(into, buf))
		}
	}
	if r, w := l.reads.Read(), l.writes.Read(); w != 2 || r == 0 {
		t.Errorf("%d reads and %d writes were counted, want 2 writes", r, w)
	}
}
