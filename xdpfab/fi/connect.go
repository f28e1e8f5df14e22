// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"bytes"
	"context"
	"fmt"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// CMDataSize is the most bytes that go with a request for a connection, and with its
// answer (FI_OPT_CM_DATA_SIZE).
const CMDataSize = wire.ConnectionData

// The causes that concern connections.
var (
	ErrNotConnected = reason(syscall.ENOTCONN, "the endpoint is not connected")
	ErrConnected    = errno.Connected
	ErrCMData       = errno.CMData
	ErrUnanswered   = reason(syscall.ETIMEDOUT, "nobody has answered the request for a connection")
)

// Connect asks the passive endpoint at addr for a connection, with at most CMDataSize
// bytes of the program's (fi_connect), and enables the endpoint if it is not. It returns
// when the request is on its way; for an IP address it waits for the next hop, as
// AddressVector.Insert does. The event queue of the endpoint, or of its domain, then gets
// an EventConnected, with what the peer gave to Accept. If the connection does not come
// about within the domain's GiveUp time, or is rejected, the event has an error:
// ErrRefused, with what the peer gave to Reject, ErrUnanswered, ErrPeerSilent.
//
// An endpoint can be connected once.
func (ep *Endpoint) Connect(ctx context.Context, addr string, param []byte) error {
	if err := ep.there(); err != nil {
		return err
	}
	c, err := ep.connectable(param)
	switch {
	case err != nil:
		return err
	case ep.attr.Request != nil:
		return errno.Refuse(ErrNotImplemented, "xdpfab: endpoint %d was made for a request: want Accept", ep.number)
	}
	a, link, err := ep.dom.resolve(ctx, addr)
	if err != nil {
		return err
	}
	if err := c.begin(asking, a, link); err != nil {
		return err
	}
	param = bytes.Clone(param)
	if ep.dom.node.Dev.GuestRing() != nil {
		c.askHost(a, param)
		return nil
	}
	ep.stepper.Call(func() {
		c.inquiry, err = ep.origin.Ask(ep.marked(link), a.Lane, a.Endpoint, param, c.answered)
	})
	if err != nil {
		return c.never(fmt.Errorf("xdpfab: %s: %w", addr, err))
	}
	ep.stepper.Eng.Notify()
	return nil
}

// Accept accepts the request for which the endpoint was made, EndpointAttr.Request, with
// at most CMDataSize bytes of the program's (fi_accept), and enables the endpoint if it
// is not. An EventConnected follows, or an event with an error if the peer is gone before
// it has opened a session. If it has opened one, and is gone by now, an EventConnected
// and an EventShutdown follow.
func (ep *Endpoint) Accept(ctx context.Context, param []byte) error {
	if err := ep.there(); err != nil {
		return err
	}
	c, err := ep.connectable(param)
	r := ep.attr.Request
	switch {
	case err != nil:
		return err
	case r == nil:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint %d was made for no request: want one with EndpointAttr.Request",
			ep.number)
	}
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	link, err := ep.dom.node.Dev.Link(ctx, r.req.From)
	if err != nil {
		return fmt.Errorf("xdpfab: %v: %w", r.req.From, err)
	}
	if err := c.begin(joining, r.req.From, link); err != nil {
		return err
	}
	c.admits.Store(r.req.Origin)
	answer := wire.Connection{Set: true, Endpoint: ep.number, Origin: ep.origin.ID()}
	answer.Fill(param)
	if err := r.answer(wire.HelloConnect, answer); err != nil {
		return c.never(err)
	}
	c.join(r.req.From)
	return nil
}

// connectable returns the connection of an endpoint that can have one.
func (ep *endpoint) connectable(param []byte) (*connection, error) {
	switch {
	case ep.conn == nil:
		return nil, errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint %d has no connections: want one with EndpointAttr.Type %v",
			ep.number, EndpointMsg)
	case len(param) > CMDataSize:
		return nil, errno.Refuse(ErrCMData, "xdpfab: %d bytes for the peer: want at most %d", len(param), CMDataSize)
	}
	return ep.conn, nil
}

// Disconnect ends the connection (fi_shutdown). Operations that wait complete with what
// is known of them before it returns, later ones fail with ErrNotConnected, and the peer
// gets an EventShutdown. This side gets none.
func (ep *Endpoint) Disconnect() error {
	if err := ep.there(); err != nil {
		return err
	}
	c, err := ep.connectable(nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.phase.Load() == unconnected {
		defer c.mu.Unlock()
		return c.unready()
	}
	c.part(ErrClosed)
	c.mu.Unlock()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.phase.Load() == shutOff {
		return nil
	}
	ep.stepper.Call(func() {
		for _, r := range ep.rings() {
			ep.stepper.Eng.Collect(r)
		}
		c.close()
	})
	ep.endTargets()
	c.partAtHost()
	return nil
}

// PeerName returns the address of the endpoint that this one is connected to
// (fi_getpeer).
func (ep *Endpoint) PeerName() (string, error) {
	if err := ep.there(); err != nil {
		return "", err
	}
	c, err := ep.connectable(nil)
	if err != nil {
		return "", err
	}
	if c.phase.Load() != connected {
		c.mu.Lock()
		defer c.mu.Unlock()
		return "", c.unready()
	}
	return c.peer(), nil
}
