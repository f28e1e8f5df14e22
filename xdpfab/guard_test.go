// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A guard ends with what the word's memory ends with, and says which.
func TestGuard(t *testing.T) {
	own := errors.New("enough")
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		for _, e := range []struct {
			name string
			end  func(f *fixture, p *xdpfab.Peer, stop context.CancelCauseFunc) error
			want error
		}{
			{"registered anew", func(f *fixture, _ *xdpfab.Peer, _ context.CancelCauseFunc) error {
				if err := f.region.Close(); err != nil {
					return err
				}
				_, err := f.server.NewRegion("r", 64)
				return err
			}, fi.ErrPeerRestarted},
			{"withdrawn", func(f *fixture, _ *xdpfab.Peer, _ context.CancelCauseFunc) error { return f.region.Close() }, fi.ErrPeerRestarted},
			{"the peer closes", func(f *fixture, _ *xdpfab.Peer, _ context.CancelCauseFunc) error { return f.server.CloseAll() }, fi.ErrPeerClosed},
			{"closed here", func(_ *fixture, p *xdpfab.Peer, _ context.CancelCauseFunc) error { return p.Close() }, fi.ErrClosed},
			{"the caller's", func(_ *fixture, _ *xdpfab.Peer, stop context.CancelCauseFunc) error { stop(own); return nil }, own},
		} {
			t.Run(e.name, func(t *testing.T) {
				f := setUp(t, a, 64)
				p, err := f.client.Dial(ctx(t), f.server.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				w, err := xdpfab.Word[uint64](ctx(t), p, "r", 3)
				if err != nil {
					t.Fatal(err)
				}
				parent, stop := context.WithCancelCause(context.Background())
				defer stop(nil)
				guarded, err := w.Guard(parent)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Add(guarded, 1); err != nil {
					t.Fatal(err)
				}
				if err := e.end(f, p, stop); err != nil {
					t.Fatal(err)
				}
				select {
				case <-guarded.Done():
				case <-ctx(t).Done():
				}
				if why := context.Cause(guarded); !errors.Is(why, e.want) {
					t.Errorf("the guard ended with: %v, want %v", why, e.want)
				}
				if e.want == fi.ErrPeerRestarted {
					if _, err := w.Guard(parent); !errors.Is(err, e.want) {
						t.Errorf("another guard: %v, want %v", err, e.want)
					}
				}
			})
		}
	})
}

// What cannot be guarded is refused at once.
func TestGuardRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	m, err := mr.Alloc(64, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mute, err := f.server.Register(m, mr.Options{Name: "mute", Access: mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer mute.Close()
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1, Size: 64}, 0).Guard(ctx(t)); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("a word by its key alone: %v", err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "mute", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Guard(ctx(t)); !errors.Is(err, fi.ErrAccess) {
		t.Errorf("a word that cannot be read: %v", err)
	}
	if _, err := (xdpfab.Remote[uint64]{}).Guard(ctx(t)); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("a zero value: %v", err)
	}
	one, other, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain}, fi.DomainAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.CloseAll()
	defer one.CloseAll()
	ep, err := other.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	if p, err = one.Dial(ctx(t), other.Name(0)); err != nil {
		t.Fatal(err)
	}
	alone := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1, Incarnation: 1, Size: 64}, 0)
	if _, err := alone.Guard(ctx(t)); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("with ThreadDomain: %v", err)
	}
}

// The errors of a watch and a guard say what has ended, and nothing of an operation.
func TestWatchSaysWhatEnded(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	s, err := f.server.Serve("guarded", 64)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(ctx(t), s.Name())
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "guarded", 0)
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := w.Guard(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() { watched <- p.Watch(ctx(t)) }()
	if err := s.Region.Close(); err != nil {
		t.Fatal(err)
	}
	<-guarded.Done()
	want := fmt.Sprintf(`xdpfab: region "guarded" on %s is no longer there: the region that was meant is gone: `, p.Addr())
	if err := context.Cause(guarded); !errors.Is(err, xdpfab.ErrPeerRestarted) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v: want ErrPeerRestarted, and %q", err, want)
	}
	if err := f.server.CloseAll(); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf("xdpfab: the session with %s ended: peer closed the session", p.Addr())
	if err := <-watched; !errors.Is(err, xdpfab.ErrPeerClosed) || err.Error() != want {
		t.Errorf("%v: want ErrPeerClosed, and %q", err, want)
	}
}
