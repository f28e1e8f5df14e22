// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// guestOf returns a domain that is a guest of d.
func guestOf(t *testing.T, d *Domain, attr DomainAttr) *Domain {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "host"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	var hosted sync.WaitGroup
	hosted.Go(func() {
		if err := d.Host(conn, GuestLimits{}); err != nil {
			t.Errorf("host: %v", err)
		}
	})
	dev, err := attach(t.Context(), share.NewTalk(c), "test")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(attr)
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.adopt(dev, f.attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.CloseAll(); err != nil {
			t.Error(err)
		}
		hosted.Wait()
	})
	return g
}

// pipeWithRegion returns two ends of a pipe; the second has a region of so many bytes.
func pipeWithRegion(t *testing.T, size int) (a, b *Domain, r *mr.Region) {
	t.Helper()
	a, b, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.CloseAll() != nil || b.CloseAll() != nil {
			t.Error("close")
		}
	})
	if r, err = b.NewRegion("words", size); err != nil {
		t.Fatal(err)
	}
	ep, err := b.NewEndpoint(EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, b, r
}

// A guest does what a domain with an interface does: words, arrays, transfers of any
// length, in both progress modes.
func TestGuest(t *testing.T) {
	for _, mode := range []ProgressMode{ProgressAuto, ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			a, b, region := pipeWithRegion(t, 4<<20)
			g := guestOf(t, a, DomainAttr{Progress: mode})
			ctx := t.Context()
			p, err := g.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			hits, err := Word[uint64](ctx, p, "words", 8)
			if err != nil {
				t.Fatal(err)
			}
			for i := range uint64(1000) {
				if n, err := hits.Add(ctx, 1); n != i+1 || err != nil {
					t.Fatalf("add %d: %d, %v", i, n, err)
				}
			}
			rr, err := p.Lookup(ctx, "words")
			if err != nil {
				t.Fatal(err)
			}
			long := make([]byte, 3<<20)
			for i := range long {
				long[i] = byte(i * 7)
			}
			if err := p.Write(ctx, rr, 4096, long); err != nil {
				t.Fatal(err)
			}
			if string(region.Bytes()[4096:][:len(long)]) != string(long) {
				t.Error("what was written is not there")
			}
			back := make([]byte, len(long))
			if err := p.Read(ctx, rr, 4096, back); err != nil || string(back) != string(long) {
				t.Errorf("read back: %v", err)
			}
			if _, err := p.Lookup(ctx, "nothing"); err == nil {
				t.Error("found a region that is not there")
			}
		})
	}
}

// Many goroutines of several guests count together, and nothing is lost or doubled.
func TestGuestsCount(t *testing.T) {
	a, b, region := pipeWithRegion(t, 4096)
	const guests, each, adds = 3, 4, 500
	var wg sync.WaitGroup
	for range guests {
		g := guestOf(t, a, DomainAttr{})
		for range each {
			wg.Go(func() {
				ctx := context.Background()
				p, err := g.Dial(ctx, b.Name(0))
				if err != nil {
					t.Error(err)
					return
				}
				w, err := Word[uint64](ctx, p, "words", 0)
				if err != nil {
					t.Error(err)
					return
				}
				for range adds {
					if _, err := w.Add(ctx, 1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	w, err := region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Load(); n != guests*each*adds {
		t.Errorf("%d, want %d", n, guests*each*adds)
	}
}

// Peers operate on the memory of a guest through the host, which goes on while the guest
// does nothing; and the guest sees the changes.
func TestGuestServes(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, DomainAttr{Progress: ProgressManual})
	mem, err := mr.Memfd("guest", 8192)
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Register(mem, mr.Options{Name: "mine", Access: mr.RemoteRead | mr.RemoteWrite, Offset: 4096})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := g.NewEndpoint(EndpointAttr{Number: 7})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p, err := b.Dial(ctx, g.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Word[uint64](ctx, p, "mine", 16)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		if n, err := w.Add(ctx, 1); n != i+1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if n := mem.Bytes()[4096+16*8]; n != 100 {
		t.Errorf("the guest sees %d", n)
	}
	rr, err := p.Lookup(ctx, "mine")
	if err != nil || rr.Incarnation != r.Incarnation() || rr.Size != 4096 {
		t.Errorf("%+v, %v; want incarnation %d", rr, err, r.Incarnation())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx, 1); err == nil {
		t.Error("an operation on a region that was withdrawn")
	}
	if err := mem.Close(); err != nil {
		t.Error(err)
	}
}
