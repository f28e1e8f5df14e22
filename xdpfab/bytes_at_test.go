// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// dialled is a fixture with a peer and the description of the region "r".
func dialled(t *testing.T, attr fi.DomainAttr) (*fixture, *xdpfab.Peer, fi.RemoteRegion) {
	f := setUp(t, attr, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	return f, p, r
}

// Peer.Write puts bytes into a peer's memory, and Peer.Read gets them from there.
func TestPeerReadWrite(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f, p, r := dialled(t, fi.DomainAttr{Progress: progress})
		rng := rand.New(rand.NewPCG(3, 3))
		for _, n := range []int{0, 1, 8, 32, 33, 80, 81, 5000, 1 << 16} {
			at := rng.IntN(len(f.mem) - n + 1)
			data, back := random(rng, n), make([]byte, n)
			if err := errors.Join(p.Write(ctx(t), r, uint64(at), data), p.Read(ctx(t), r, uint64(at), back)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(f.mem[at:at+n], data) || !bytes.Equal(back, data) {
				t.Errorf("%d bytes at %d: memory right: %t, read right: %t", n, at, bytes.Equal(f.mem[at:at+n], data), bytes.Equal(back, data))
			}
		}
		for _, c := range []struct {
			at uint64
			n  int
		}{{1<<16 - 1, 2}, {1<<16 + 1, 0}, {math.MaxUint64, 1}, {math.MaxUint64 - 7, 8}} {
			if err := p.Read(ctx(t), r, c.at, make([]byte, c.n)); !errors.Is(err, fi.ErrOutOfBounds) {
				t.Errorf("read of %d bytes at %d: %v", c.n, c.at, err)
			}
			unsized := r
			unsized.Size = 0 // then the peer decides
			if err := p.Write(ctx(t), unsized, c.at, make([]byte, c.n)); !errors.Is(err, fi.ErrOutOfBounds) || !errors.Is(err, fi.ErrNotExecuted) {
				t.Errorf("write of %d bytes at %d: %v", c.n, c.at, err)
			}
		}
		stale := r
		stale.Incarnation++
		if err := p.Write(ctx(t), stale, 0, []byte{1}); !errors.Is(err, fi.ErrPeerRestarted) || !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("into another registration: %v", err)
		}
		ended, cancel := context.WithCancel(ctx(t))
		cancel()
		if err := p.Write(ended, r, 0, make([]byte, 100)); !errors.Is(err, context.Canceled) || !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("with a context that has ended: %v", err)
		}
	}
}

// A region is an io.ReaderAt and io.WriterAt.
func TestBytesAt(t *testing.T) {
	f, p, r := dialled(t, fi.DomainAttr{})
	b := xdpfab.BytesAt(ctx(t), p, r)
	if b.Size() != 1<<16 {
		t.Fatalf("size %d", b.Size())
	}
	rng := rand.New(rand.NewPCG(4, 4))
	data := random(rng, 1<<16)
	if n, err := b.WriteAt(data, 0); n != len(data) || err != nil || !bytes.Equal(f.mem, data) {
		t.Fatalf("%d, %v", n, err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(b, 1000, 1<<20)); err != nil || !bytes.Equal(got, data[1000:]) {
		t.Errorf("a section: %d bytes, %v", len(got), err)
	}
	for _, c := range []struct {
		at   int64
		n    int
		want error
	}{{1<<16 - 10, 10, nil}, {1<<16 - 10, 11, io.EOF}, {1 << 16, 1, io.EOF}, {1 << 40, 1, io.EOF}, {5, 0, nil}, {-1, 1, fi.ErrOutOfBounds}} {
		buf := make([]byte, c.n)
		n, err := b.ReadAt(buf, c.at)
		if !errors.Is(err, c.want) || err == nil && c.want != nil || c.at >= 0 && n != max(0, min(c.n, int(1<<16-c.at))) {
			t.Errorf("%d bytes at %d: %d, %v; want %v", c.n, c.at, n, err, c.want)
		}
		if n > 0 && !bytes.Equal(buf[:n], data[c.at:][:n]) {
			t.Errorf("%d bytes at %d: wrong ones", c.n, c.at)
		}
	}
	for _, at := range []int64{-1, 1<<16 - 3, 1 << 40} {
		if n, err := b.WriteAt(make([]byte, 4), at); n != 0 || !errors.Is(err, fi.ErrOutOfBounds) {
			t.Errorf("4 bytes written at %d: %d, %v", at, n, err)
		}
	}
	if !bytes.Equal(f.mem, data) {
		t.Error("a refused write has changed memory")
	}
}

// A region whose size nobody has said is not taken for an empty one.
func TestBytesAtWithoutSize(t *testing.T) {
	_, p, r := dialled(t, fi.DomainAttr{})
	r.Size = 0
	b := xdpfab.BytesAt(ctx(t), p, r)
	if n, err := b.ReadAt(make([]byte, 8), 0); n != 0 || !errors.Is(err, xdpfab.ErrArgument) {
		t.Errorf("read: %d, %v, want ErrArgument", n, err)
	}
	if n, err := b.WriteAt(make([]byte, 8), 0); n != 0 || !errors.Is(err, xdpfab.ErrArgument) {
		t.Errorf("write: %d, %v, want ErrArgument", n, err)
	}
	if n, err := io.Copy(io.Discard, io.NewSectionReader(b, 0, 8)); n != 0 || err == nil {
		t.Errorf("copy: %d, %v, want an error", n, err)
	}
}
