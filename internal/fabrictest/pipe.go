// SPDX-License-Identifier: Apache-2.0

// Package fabrictest joins domains of package xdpfab to nodes and to guests, for tests of
// what stands on a node alone, and of what guests can do as well.
package fabrictest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Pipe is xdpfab.Pipe with a device in place of the second domain.
func Pipe(attr xdpfab.DomainAttr) (*xdpfab.Domain, node.Device, error) {
	a, b := node.NewPipe()
	d, err := On(a, attr)
	return d, b, err
}

// On makes a domain of a device.
func On(dev node.Device, attr xdpfab.DomainAttr) (*xdpfab.Domain, error) {
	d, err := node.DomainOn(dev, attr)
	if err != nil {
		return nil, err
	}
	return &xdpfab.Domain{Domain: d.(*fi.Domain)}, nil
}

// Hosting has a domain host every program that connects, and returns how to connect.
func Hosting(t testing.TB, d *fi.Domain, limits ...host.GuestLimits) func(context.Context) (*share.Talk, error) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "host"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var hosted sync.WaitGroup
	hosted.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			hosted.Go(func() {
				err := host.On(calls.Of(d).Node()).Serve(conn, append(limits, host.GuestLimits{})[0])
				if err != nil && !errors.Is(err, fi.ErrClosed) {
					t.Errorf("host: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		hosted.Wait()
	})
	return func(context.Context) (*share.Talk, error) {
		c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
		if err != nil {
			return nil, err
		}
		return share.NewTalk(c), nil
	}
}

// Guest returns a domain that is a guest of d until the test ends.
func Guest(t testing.TB, d *xdpfab.Domain, attr xdpfab.DomainAttr) *xdpfab.Domain {
	t.Helper()
	talk, err := Hosting(t, d.Domain)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guest.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := On(dev, attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	return g
}
