// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// successive has a domain host the same guest again and again: dial is how the guest
// finds it, and leave ends the present conversation.
func successive(d *xdpfab.Domain) (dial func(context.Context) (*share.Talk, error), leave func()) {
	var hosting atomic.Pointer[net.UnixConn]
	dial = func(context.Context) (*share.Talk, error) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		var ends [2]*net.UnixConn
		for i, fd := range fds {
			f := os.NewFile(uintptr(fd), "pair")
			c, err := net.FileConn(f)
			if err := errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
			ends[i] = c.(*net.UnixConn)
		}
		hosting.Store(ends[0])
		go func() { _ = d.Hosting().Serve(ends[0], host.GuestLimits{}) }()
		return share.NewTalk(ends[1]), nil
	}
	return dial, func() { _ = hosting.Load().Close() }
}

// What a program makes and closes while its domain moves from host to host is at the last
// one once, or not at all.
func TestMovesWhole(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial, leave := successive(a)
	g := guestBy(t, dial, fi.DomainAttr{}, dial)
	stop := make(chan struct{})
	var working sync.WaitGroup
	var rounds atomic.Int64
	work := func(f func() error) {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(); err == nil {
					rounds.Add(1)
				} else if !errors.Is(err, fi.ErrHostLost) && !errors.Is(err, fi.ErrBusy) {
					t.Error(err)
					return
				}
			}
		})
	}
	ctx := t.Context()
	work(func() error {
		ep, err := g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err != nil {
			return err
		}
		return errors.Join(ep.Enable(), ep.Close())
	})
	work(func() error {
		p, err := g.Dial(ctx, b.Name(0))
		if err != nil {
			return err
		}
		return p.Close()
	})
	mem, err := mr.Memfd("guest", 4096)
	if err != nil {
		t.Fatal(err)
	}
	work(func() error {
		r, err := g.Register(mem, mr.Options{Access: mr.RemoteRead})
		if err != nil {
			return err
		}
		return r.Close()
	})
	for range reduced(8, 4) {
		before := rounds.Load()
		testnet.Eventually(t, "the program works", func() bool { return rounds.Load() > before+20 || t.Failed() })
		leave()
	}
	before := rounds.Load()
	testnet.Eventually(t, "the program works at the last host", func() bool { return rounds.Load() > before+20 || t.Failed() })
	close(stop)
	working.Wait()
	if err := mem.Close(); err != nil {
		t.Error(err)
	}
	// The endpoint that dials is left; its peer is given back a moment later.
	var got host.AttachedGuest
	testnet.Eventually(t, "the host has what the program has", func() bool {
		all := a.Hosting().Guests()
		if len(all) == 1 {
			got = all[0]
		}
		return len(all) == 1 && got.Endpoints == 1 && got.Peers == 0 && got.Regions == 0
	})
}

// A guest goes on at the next host though another program has the number there that its
// dialling endpoint had: nobody addresses it by that.
func TestMovesToAnotherNumber(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial, leave := successive(a)
	var taken atomic.Bool
	redial := func(ctx context.Context) (*share.Talk, error) {
		if len(a.Hosting().Guests()) > 0 {
			return nil, fi.ErrNoDaemon // the former conversation has not ended
		}
		if taken.CompareAndSwap(false, true) {
			if _, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, InitiateOnly: true}); err != nil {
				return nil, err
			}
		}
		return dial(ctx)
	}
	g := guestBy(t, dial, fi.DomainAttr{}, redial)
	p, err := g.Dial(t.Context(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](t.Context(), p, "words", 0)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	testnet.Eventually(t, "the guest goes on", func() bool {
		_, err := w.Add(t.Context(), 1)
		return err == nil && taken.Load()
	})
}
