// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/handler"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// OpenHandler makes an endpoint whose function answers requests.
func (d asDialer) OpenHandler(attr calls.HandlerAttr) (calls.Handler, error) {
	ep, err := d.NewEndpoint(EndpointAttr{Number: attr.Number, TrafficClass: TrafficClass(attr.TrafficClass),
		AuthKey: attr.AuthKey, dials: true,
		handler: handler.New(attr.Function, attr.Requests, attr.Goroutines)})
	if err != nil {
		return nil, err
	}
	ep.attr.handler.Attend(attendant{ep.stepper})
	if err := ep.Enable(); err != nil {
		return nil, errno.Join(err, ep.Close())
	}
	m := (*mailed)(ep.endpoint)
	d.keep(m, fmt.Sprintf("handler %d", ep.number))
	return m, nil
}

// attendant is the stepper of an endpoint as its handler knows it.
type attendant struct{ *node.Stepper }

// Alert implements handler.Attendant.
func (a attendant) Alert() { a.Eng.Alert() }

// Held implements calls.Handler.
func (m *mailed) Held() int { return m.attr.handler.Held() }

// Callee answers the calls of a session; nil if the endpoint takes none.
func (ep *asTenant) Callee(from wire.Addr, party session.Party, ended func()) session.Callee {
	if ep.attr.handler == nil {
		return nil
	}
	return ep.attr.handler.NewSession(from, party, ended)
}

// beside returns how the requests to a peer that was dialled from the endpoint reach it.
func (ep *endpoint) beside(a wire.Addr, link wire.Link, addr string) func(context.Context) (*calls.Peer, error) {
	return func(ctx context.Context) (*calls.Peer, error) {
		caller, err := ep.callEndpoint()
		if err != nil {
			return nil, err
		}
		use, err := caller.dial(a, link)
		if err != nil {
			return nil, err
		}
		return caller.connectPeer(ctx, use, addr)
	}
}

// callEndpoint makes, at first use, the endpoint that the requests of an endpoint's peers
// share.
func (ep *endpoint) callEndpoint() (*endpoint, error) {
	ep.callMu.Lock()
	defer ep.callMu.Unlock()
	if ep.calls != nil {
		return ep.calls, nil
	}
	h, err := ep.dom.NewEndpoint(EndpointAttr{Number: AnyNumber, InitiateOnly: true, Size: 4096, dials: true,
		MsgOrder: OrderNone, TrafficClass: ep.attr.TrafficClass, AuthKey: ep.attr.AuthKey})
	if err != nil {
		return nil, err
	}
	if err := h.Enable(); err != nil {
		return nil, errno.Join(err, h.Close())
	}
	ep.calls = h.endpoint
	return ep.calls, nil
}

// closeCalls closes that endpoint.
func (ep *endpoint) closeCalls() {
	ep.callMu.Lock()
	defer ep.callMu.Unlock()
	if ep.calls != nil {
		_ = ep.calls.close() // nothing is bound to it that could be in use
	}
}
