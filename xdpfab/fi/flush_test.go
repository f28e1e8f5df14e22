// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The completion of a flush comes behind those of all that was posted before it, also of
// what failed, and has no flags; a queue for chosen completions has it, too.
func TestFlush(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 256)
		for _, dest := range []fi.Address{f.dest, fi.NoAddress} {
			before := binary.LittleEndian.Uint64(f.mem)
			for i := range 100 {
				m := fi.Msg{Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Buf: u64s(1), Context: i}
				err := f.ep.Atomic(&m, 0)
				switch i % 10 {
				case 3: // refused: the region is read-only
					m.Key = 2
					err = errors.Join(err, f.ep.Atomic(&m, 0))
				case 5:
					err = errors.Join(err, f.ep.InjectAtomic(&m))
				case 7:
					x := fi.RMA{Dest: f.dest, Key: 1, Offset: 64, Buf: make([]byte, 20_000), Context: -1}
					err = errors.Join(err, f.ep.Write(&x, 0))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := f.ep.Flush(dest, "flush"); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for i := range 121 {
				c := take(t, f)
				if c.Err != nil {
					failed++
				}
				if last := i == 120; last != (c.Context == "flush") {
					t.Fatalf("completion %d: %+v", i, c)
				} else if last && (c.Err != nil || c.Flags != 0 || c.Bytes != 0 || c.Source != dest) {
					t.Errorf("the flush: %+v", c)
				}
			}
			if failed != 10 || binary.LittleEndian.Uint64(f.mem) != before+110 {
				t.Errorf("%d have failed, and %d have run; want 10, 110", failed, binary.LittleEndian.Uint64(f.mem)-before)
			}
		}
	})
}

// Of all operations a selective queue has the flush alone, and no counter counts it.
func TestFlushSelective(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		b := &bench{T: t, client: f.client, server: f.server, key: 1, av: f.av, dest: f.dest}
		counter := b.counter()
		cq, err := f.client.NewCompletionQueue(fi.CQAttr{Size: 8})
		b.ok(err)
		ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 64})
		b.ok(err)
		b.ok(errors.Join(ep.Bind(f.av, 0), ep.Bind(cq, fi.BindTransmit|fi.BindSelective), ep.Bind(counter, fi.BindRead),
			ep.Enable()))
		for range 40 {
			b.ok(ep.FetchAtomic(b.fetchAdd(0), 0))
		}
		b.ok(ep.Flush(fi.NoAddress, "flush"))
		f.cq = cq
		if c := take(t, f); c.Context != "flush" || c.Err != nil {
			t.Errorf("%+v, want the flush", c)
		}
		if n := counter.Read(); n != 40 {
			t.Errorf("%d operations counted, want 40", n)
		}
		b.ok(ep.Close())
	})
}

// What cannot be flushed is refused.
func TestFlushRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	counter, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Flush(fi.NoAddress, nil); !errors.Is(err, fi.ErrNotEnabled) {
		t.Errorf("not enabled: %v", err)
	}
	if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(counter, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if err := ep.Flush(f.dest, nil); !errors.Is(err, fi.ErrNoCQ) {
		t.Errorf("without a queue: %v", err)
	}
	if err := f.ep.Flush(f.dest+1, nil); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("of nobody: %v", err)
	}
	if err := f.ep.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.ep.Flush(f.dest, nil); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
