// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	syncatomic "sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// mover is an endpoint that reads and writes a peer's memory.
type mover struct {
	ep   *fi.Endpoint
	cq   *fi.CompletionQueue
	dest fi.Address
}

func newMover(t testing.TB, d *xdpfab.Domain, peer string, attr fi.EndpointAttr) *mover {
	t.Helper()
	attr.Number = fi.AnyNumber
	ep, err := d.NewEndpoint(attr)
	if err != nil {
		t.Fatal(err)
	}
	av, err1 := d.NewAddressVector()
	cq, err2 := d.NewCompletionQueue(fi.CQAttr{Size: 64})
	if err := errors.Join(err1, err2, ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	m := &mover{ep: ep, cq: cq}
	if m.dest, err = av.Insert(ctx(t), peer); err != nil {
		t.Fatal(err)
	}
	return m
}

// do posts a transfer and waits for its success.
func (m *mover) do(t testing.TB, post func(*fi.RMA, fi.OpFlags) error, x fi.RMA) {
	t.Helper()
	x.Dest = m.dest
	if err := post(&x, 0); err != nil {
		t.Fatal(err)
	}
	var one [1]fi.Completion
	for {
		n, err := m.cq.Read(one[:])
		if errors.Is(err, fi.ErrErrorPending) {
			c, _ := m.cq.ReadErr()
			t.Fatal(c.Err)
		}
		if n == 1 {
			return
		}
		if err := m.cq.Wait(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// Long transfers over real interfaces arrive byte for byte, by every encapsulation, with
// either progress, with order and without.
func TestVethRMA(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) { testVethRMA(t, progress) })
	}
}

func testVethRMA(t *testing.T, progress fi.ProgressMode) {
	longest := reduced(1<<20, 1<<18) // several windows
	a, b, pair := onVeth(t, 1, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, uint64(progress)))
	for _, addr := range []string{b.Name(0), pair.B.IP4.String(), pair.B.IP6.String()} {
		for _, order := range []fi.Order{0, fi.OrderNone} {
			m := newMover(t, a, addr, fi.EndpointAttr{MsgOrder: order})
			for _, n := range []int{0, 1, 1400, 100_003, longest} {
				at := rng.IntN(1<<20 - n + 1)
				data, back := random(rng, n), make([]byte, n)
				m.do(t, m.ep.Write, fi.RMA{Buf: data, Key: r.Key, Offset: uint64(at)})
				m.do(t, m.ep.Read, fi.RMA{Pieces: divide(rng, back, 1), Key: r.Key, Offset: uint64(at)})
				if !bytes.Equal(back, data) {
					t.Errorf("%s, order %v: %d bytes at %d are other ones", addr, order, n, at)
				}
			}
		}
	}
}

// 64 MiB there and back, byte for byte.
func TestVethLongRMA(t *testing.T) {
	size := reduced(16<<20, 1<<20)
	a, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	region, err := b.NewRegion("long", size)
	if err != nil {
		t.Fatal(err)
	}
	m := newMover(t, a, b.Name(0), fi.EndpointAttr{})
	data, back := make([]byte, size-5), make([]byte, size-5)
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	m.do(t, m.ep.Write, fi.RMA{Buf: data, Key: region.Key(), Offset: 3})
	got := make([]byte, size)
	atomic.ReadBytes(got, region.Bytes())
	if !bytes.Equal(got[3:size-2], data) || got[0]|got[1]|got[2]|got[size-1]|got[size-2] != 0 {
		t.Error("memory does not have what was written, or more than that")
	}
	m.do(t, m.ep.Read, fi.RMA{Buf: back, Key: region.Key(), Offset: 3})
	if !bytes.Equal(back, data) {
		t.Error("other bytes are read than were written")
	}
}

// Through losses, duplicates and reordering transfers arrive byte for byte.
func TestRMAUnderFaults(t *testing.T) {
	for _, order := range []fi.Order{0, fi.OrderNone} {
		f := setUp(t, fi.DomainAttr{}, 64)
		faults := fi.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1, Corrupt: 0.02}
		if err := errors.Join(f.client.SetFaults(faults), f.server.SetFaults(faults)); err != nil {
			t.Fatal(err)
		}
		m := newMover(t, f.client, f.server.Name(0), fi.EndpointAttr{MsgOrder: order})
		rng := rand.New(rand.NewPCG(6, 6))
		for range 20 {
			n := rng.IntN(len(f.mem))
			at := rng.IntN(len(f.mem) - n)
			data, back := random(rng, n), make([]byte, n)
			m.do(t, m.ep.Write, fi.RMA{Pieces: divide(rng, data, 1), Key: 1, Offset: uint64(at)})
			m.do(t, m.ep.Read, fi.RMA{Buf: back, Key: 1, Offset: uint64(at)})
			if !bytes.Equal(back, data) || !bytes.Equal(f.mem[at:at+n], data) {
				t.Fatalf("order %v: %d bytes at %d are other ones", order, n, at)
			}
		}
	}
}

// No word is ever torn: while one peer writes words of eight equal bytes, at once in an
// array of several frames and in pieces that divide words, neither the owner nor another
// peer, by reads and by atomics, sees any other. And no update by an atomic is lost
// beside a write to other bytes.
func TestWordsOfRMAAreAtomic(t *testing.T) {
	const words, rounds = 500, 150
	f := setUp(t, fi.DomainAttr{}, 64)
	clear(f.mem)
	whole := func(v uint64) bool { return v == v&0xff*0x0101010101010101 }
	counter, err := f.region.Uint64(words)
	if err != nil {
		t.Fatal(err)
	}
	movers := []*mover{newMover(t, f.client, f.server.Name(0), fi.EndpointAttr{}), newMover(t, f.client, f.server.Name(0), fi.EndpointAttr{}),
		newMover(t, f.client, f.server.Name(0), fi.EndpointAttr{})}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	var stop syncatomic.Bool
	var others sync.WaitGroup
	others.Go(func() { // the owner
		for i := 0; !stop.Load(); i++ {
			w, err := f.region.Uint64(i % words)
			if err != nil {
				t.Error(err)
				return
			}
			if v := w.Load(); !whole(v) {
				t.Errorf("the owner finds %#x in word %d", v, i%words)
				return
			}
		}
	})
	others.Go(func() { // a peer that reads
		buf := make([]byte, 8*words)
		for !stop.Load() {
			movers[1].do(t, movers[1].ep.Read, fi.RMA{Buf: buf, Key: 1})
			for i := 0; i < len(buf); i += 8 {
				if v := binary.LittleEndian.Uint64(buf[i:]); !whole(v) {
					t.Errorf("a peer reads %#x in word %d", v, i/8)
					return
				}
			}
		}
	})
	others.Go(func() { // a peer that exchanges words for other whole ones
		for i := uint64(0); !stop.Load(); i++ {
			w, err := xdpfab.Word[uint64](ctx(t), p, "r", i%words)
			if err != nil {
				t.Error(err)
				return
			}
			if v, err := w.Swap(ctx(t), i&0xff*0x0101010101010101); err != nil || !whole(v) {
				t.Errorf("a peer exchanges %#x in word %d, %v", v, i%words, err)
				return
			}
		}
	})
	adds := 0
	others.Go(func() { // a peer that adds to the lower half of a word, beside whose upper half bytes are written
		w, err := xdpfab.Word[uint32](ctx(t), p, "r", 2*words)
		for ; err == nil && !stop.Load(); adds++ {
			_, err = w.Add(ctx(t), 1)
		}
		if err != nil {
			t.Error(err)
		}
	})
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range rounds {
		data := bytes.Repeat([]byte{byte(i)}, 8*words)
		x := fi.RMA{Buf: data, Key: 1}
		if i%2 == 1 {
			x.Buf, x.Pieces = nil, divide(rng, data, 1)
		}
		movers[0].do(t, movers[0].ep.Write, x)
		movers[2].do(t, movers[2].ep.Write, fi.RMA{Buf: []byte{byte(i), 1, 2}, Key: 1, Offset: 8*words + 5})
	}
	stop.Store(true)
	others.Wait()
	if got := uint32(counter.Load()); int(got) != adds {
		t.Errorf("%d additions, but the sum is %d", adds, got)
	}
}

func BenchmarkVethRMA(b *testing.B) {
	c, s, _ := onVeth(b, 1, fi.DomainAttr{}, fi.DomainAttr{})
	r, err := s.NewRegion("bench", 1<<22)
	if err != nil {
		b.Fatal(err)
	}
	m := newMover(b, c, s.Name(0), fi.EndpointAttr{})
	for _, n := range []int{8, 4096, 1 << 20} {
		for name, post := range map[string]func(*fi.RMA, fi.OpFlags) error{"read": m.ep.Read, "write": m.ep.Write} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				buf := make([]byte, n)
				b.SetBytes(int64(n))
				for b.Loop() {
					m.do(b, post, fi.RMA{Buf: buf, Key: r.Key()})
				}
			})
		}
	}
}
