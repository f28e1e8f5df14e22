// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"container/list"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// ConnRequest is a request for a connection, which waits for an answer: an endpoint that
// was made for it accepts it, and PassiveEndpoint.Reject rejects it. The peer repeats it
// until then. It is the handle of fi_info.
type ConnRequest struct {
	pep    *PassiveEndpoint
	origin uint64    // of the endpoint that asks
	node   wire.Addr // that it is on
	from   wire.Addr // its address
	param  []byte

	// Under pep.mu:
	status  wire.HelloStatus // HelloWaiting, or the answer; HelloNoEndpoint when it is forgotten
	reply   wire.Connection
	heardAt int64         // Domain.now
	place   *list.Element // in pep.recent
}

// Peer returns the address of the endpoint that asks.
func (r *ConnRequest) Peer() string { return r.from.String() }

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
		return fmt.Errorf("xdpfab: passive endpoint %d: reject: want a request that it got: %w", p.number, ErrForeign)
	case len(param) > CMDataSize:
		return fmt.Errorf("xdpfab: %d bytes for the peer: want at most %d: %w", len(param), CMDataSize, ErrCMData)
	}
	reply := wire.Connection{Set: true}
	reply.Fill(param)
	return r.answer(wire.HelloRejected, reply)
}

// gone reports whether the peer has stopped asking. pep.mu is held.
func (r *ConnRequest) gone(now int64) bool {
	return r.status == wire.HelloWaiting && now-r.heardAt > int64(r.pep.dom.attr.GiveUp)
}

// answer answers the request, once.
func (r *ConnRequest) answer(status wire.HelloStatus, reply wire.Connection) error {
	p := r.pep
	if p.heard != nil {
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return p.errClosed()
		}
		x := share.Decision{Passive: p.number, Origin: r.origin, Accepted: status == wire.HelloConnect, Endpoint: reply.Endpoint, Data: reply.Bytes()}
		if done, err := p.heard.reply(x); err != nil {
			return fmt.Errorf("xdpfab: request of %v: %w", r.from, err)
		} else if done {
			return nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return p.errClosed()
	case r.status == wire.HelloNoEndpoint || r.gone(p.dom.node.now()):
		return fmt.Errorf("xdpfab: request of %v: %w: it does not ask any more", r.from, ErrPeerSilent)
	case r.status != wire.HelloWaiting:
		return fmt.Errorf("xdpfab: request of %v: answered already: %w", r.from, ErrBusy)
	}
	p.settle(r)
	r.status, r.reply = status, reply
	return nil
}
