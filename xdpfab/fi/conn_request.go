// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// ConnRequest is a request for a connection, which waits for an answer: an endpoint that
// was made for it accepts it, and PassiveEndpoint.Reject rejects it. The peer repeats it
// until then. It is the handle of fi_info.
type ConnRequest struct {
	req *node.Request
	pep *PassiveEndpoint
}

// Peer returns the address of the endpoint that asks; none for a request that no peer has
// made.
func (r *ConnRequest) Peer() string {
	if r.req == nil {
		return wire.Addr{}.String()
	}
	return r.req.From.String()
}

// Info describes the endpoint to make for the request (info of fi_eq_cm_entry): its
// EndpointAttr are for Domain.NewEndpoint. That of a request which no peer has made is
// empty.
func (r *ConnRequest) Info() Info {
	if r.pep == nil {
		return Info{}
	}
	o := r.pep.dom.offer()
	o = o.connected()
	i := (&Info{}).settle(&o)
	i.Dest, i.Handle = r.Peer(), r
	i.Endpoint.AuthKey = r.pep.attr.AuthKey.or(nil)
	return i
}

// Reject rejects a request, with at most CMDataSize bytes of the program's for the peer
// (fi_reject).
func (p *PassiveEndpoint) Reject(r *ConnRequest, param []byte) error {
	switch {
	case r == nil || r.pep != p:
		return fmt.Errorf("xdpfab: passive endpoint %d: reject: want a request that it got: %w",
			p.listener.Number, ErrForeign)
	case len(param) > CMDataSize:
		return fmt.Errorf("xdpfab: %d bytes for the peer: want at most %d: %w", len(param), CMDataSize, ErrCMData)
	}
	reply := wire.Connection{Set: true}
	reply.Fill(param)
	return r.answer(wire.HelloRejected, reply)
}

// answer answers the request, once.
func (r *ConnRequest) answer(status wire.HelloStatus, reply wire.Connection) error {
	p := r.pep
	if err := p.listener.Open(); err != nil {
		return err
	}
	x := share.Decision{Passive: p.listener.Number, Origin: r.req.Origin, Accepted: status == wire.HelloConnect,
		Endpoint: reply.Endpoint, Data: reply.Bytes()}
	if done, err := p.heard.Reply(x); err != nil {
		return fmt.Errorf("xdpfab: request of %v: %w", r.req.From, err)
	} else if done {
		return nil
	}
	return p.listener.Answer(r.req, status, reply)
}
