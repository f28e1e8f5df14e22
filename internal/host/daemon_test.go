// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// daemon is a domain that hosts whoever attaches at a control socket, as xdpfabd does,
// with a peer at the other end of its cable.
type daemon struct {
	testing.TB
	socket string
	peer   *xdpfab.Domain
	limits host.GuestLimits
	node   *host.Host
}

// newDaemon starts one, whose peer has an endpoint 0.
func newDaemon(t testing.TB, limits host.GuestLimits) *daemon {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	own, peer, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(own.CloseAll(), peer.CloseAll()); err != nil {
			t.Error(err)
		}
	})
	ep, err := peer.NewEndpoint(xdpfab.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t, filepath.Join(t.TempDir(), "run", "x.sock"), peer, limits, host.On(calls.Of(own.Domain).Node())}
	l, err := control.Listen(t.Context(), d.socket, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.ServeListener(ctx, l, control.Service{Admit: d.admit}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *daemon) admit(context.Context, control.Program) (control.Place, error) { return d, nil }

// Host implements control.Place.
func (d *daemon) Host(conn *net.UnixConn) {
	if err := d.node.Serve(conn, d.limits); err != nil {
		d.Errorf("a program was turned out: %v", err)
	}
}

// Leave implements control.Place.
func (d *daemon) Leave() {}

// accepts has the peer accept connections at its passive endpoint 9, with endpoints 11.
func (d *daemon) accepts() {
	q := d.queue()
	pep, err := d.peer.NewPassiveEndpoint(fi.PassiveAttr{Number: 9})
	if err = errors.Join(err, pep.Bind(q), pep.Listen()); err != nil {
		d.Fatal(err)
	}
	go func() {
		if q.Wait(d.Context()) != nil {
			return // nobody has asked
		}
		e, _, err := q.Read()
		if err == nil && e.Kind == fi.EventConnReq {
			info := e.Request.Info()
			attr := info.EndpointAttr()
			attr.Number = 11
			err = d.connectable(attr, q).Accept(d.Context(), []byte("welcome"))
		}
		if err != nil {
			d.Error(err)
		}
	}()
}

// asks has the peer's endpoint 10 ask for a connection.
func (d *daemon) asks(address string) {
	ep := d.connectable(fi.EndpointAttr{Number: 10, Type: fi.EndpointMsg}, d.queue())
	if err := ep.Connect(d.Context(), address, []byte("hello")); err != nil {
		d.Error(err)
	}
}

func (d *daemon) queue() *fi.EventQueue {
	q, err := d.peer.Fabric().NewEventQueue(fi.EQAttr{})
	if err != nil {
		d.Fatal(err)
	}
	return q
}

// connectable makes an endpoint of the peer that can be connected.
func (d *daemon) connectable(attr fi.EndpointAttr, q *fi.EventQueue) *fi.Endpoint {
	cq, err := d.peer.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		d.Error(err)
	}
	ep, err := d.peer.Domain.NewEndpoint(attr)
	if err == nil {
		err = errors.Join(ep.Bind(cq, 0), ep.Bind(q, 0))
	}
	if err != nil {
		d.Error(err)
	}
	return ep
}
