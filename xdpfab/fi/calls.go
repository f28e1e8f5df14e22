// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
)

func init() {
	calls.Of = func(domain any) calls.Domain { return asDialer{domain.(*Domain)} }
}

// asDialer is the domain that dials, and has mailboxes.
type asDialer struct{ *Domain }

// Dial dials from the endpoint that dialled peers share.
func (d asDialer) Dial(ctx context.Context, addr string) (*calls.Peer, error) {
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	ep, err := d.dialEndpoint()
	if err != nil {
		return nil, err
	}
	return d.dialFrom(ctx, ep, addr)
}

// Node returns what the domain stands on.
func (d asDialer) Node() *node.Node { return d.node }

// dialFrom dials from one of the domain's own endpoints.
func (d *Domain) dialFrom(ctx context.Context, ep *endpoint, addr string) (*calls.Peer, error) {
	a, link, err := d.resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	use, err := ep.dial(a, link)
	if err != nil {
		return nil, err
	}
	p, err := ep.connectPeer(ctx, use, addr)
	if err != nil {
		return nil, d.deafToUDP(ctx, ep, a, link, err)
	}
	p.Beside = ep.beside(a, link, addr)
	return p, nil
}

// connectPeer opens the session to a peer.
func (ep *endpoint) connectPeer(ctx context.Context, use *name, addr string) (*calls.Peer, error) {
	p := ep.callPeer(use, addr)
	if err := p.Do(ctx, calls.Call{Verb: engine.VerbConnect}); err != nil {
		return nil, errno.Join(err, p.Close())
	}
	return p, nil
}

// tryEthernet is how long a node that is silent over UDP is tried by raw Ethernet.
var tryEthernet = time.Second

// deafToUDP adds to the error of a peer that is silent at its IP address that a node
// answers raw Ethernet at the MAC address of the next hop, if one does.
func (d *Domain) deafToUDP(ctx context.Context, ep *endpoint, a wire.Addr, link wire.Link, silent error) error {
	if !errors.Is(silent, ErrPeerSilent) || !a.IsIP() || d.node.Dev.Medium() == wire.OnSocket {
		return silent
	}
	ctx, cancel := context.WithTimeout(ctx, min(tryEthernet, d.attr.GiveUp))
	defer cancel()
	at := wire.Addr{MAC: link.Remote, Endpoint: a.Endpoint, Lane: a.Lane}
	link, err := d.node.Dev.Link(ctx, at)
	if err != nil {
		return silent
	}
	use, err := ep.dial(at, link)
	if err != nil {
		return silent
	}
	p := ep.callPeer(use, at.String())
	err = p.Do(ctx, calls.Call{Verb: engine.VerbConnect})
	_ = p.Close() // it has not been closed before
	if err != nil && !errors.Is(err, ErrRefused) {
		return silent
	}
	calls.SilenceTold(silent)
	return fmt.Errorf("%w; %v is no longer its address, or %w there: a node answers raw Ethernet at %v, which is the "+
		"peer unless a router is between: give its present address, start it without xdpfabd --udp=false or "+
		"DomainAttr.EthernetOnly, or give the MAC address", silent, a.IP, port.ErrNoUDP, at)
}

// callPeer returns a peer to call, which is a child of the domain until it is closed.
func (ep *endpoint) callPeer(use *name, addr string) *calls.Peer {
	var p *calls.Peer
	r := ep.route(use, addr)
	r.Leave = func() {
		ep.disconnect(use)
		ep.dom.remove(p)
	}
	p = calls.NewPeer(r)
	ep.dom.keep(p, "peer "+addr)
	return p
}

// route returns the way of calls to a name, which errors call addr.
func (ep *endpoint) route(n *name, addr string) calls.Route {
	return calls.Route{
		Poster: (*poster)(ep), Node: ep.dom.node, Stepper: ep.stepper, Ring: ep.ring, Peer: n.peer,
		Allotment: n.allotment, Name: addr,
		GiveUp: ep.dom.attr.GiveUp, Alone: ep.dom.attr.Threading == ThreadDomain,
	}
}

// dialEndpoint makes, at first use, the endpoint that dialled peers share.
func (d *Domain) dialEndpoint() (*endpoint, error) {
	d.mu.Lock()
	ep := d.dialer
	d.mu.Unlock()
	if ep != nil {
		return ep, nil
	}
	h, err := d.NewEndpoint(EndpointAttr{Number: AnyNumber, InitiateOnly: true, Size: 4096, dials: true})
	if err != nil {
		return nil, err
	}
	if err := h.Enable(); err != nil {
		return nil, errno.Join(err, h.Close())
	}
	d.mu.Lock()
	if d.dialer == nil {
		d.dialer = h.endpoint
	}
	mine := d.dialer
	d.mu.Unlock()
	if mine != h.endpoint { // another goroutine was faster
		return mine, h.Close()
	}
	return mine, nil
}

// poster is an endpoint as its calls know it.
type poster endpoint

// Claim implements calls.Poster.
func (p *poster) Claim(cookie uint64) (calls.Claimed, error) {
	return (*endpoint)(p).claim(cookie)
}

// Hand implements calls.Poster.
func (p *poster) Hand(c calls.Claimed) { (*endpoint)(p).hand(c) }

// Failed implements calls.Poster. Engine's thread.
func (p *poster) Failed(s *engine.Submission, c *engine.Completion, later *engine.Later, peer string) error {
	e := errorOf(resultOf(s, c, later), calls.NameOf(s), peer).by((*endpoint)(p), s)
	if calls.LooksUp(s.Verb) {
		e.withoutEffect()
	}
	return e
}

// Stale implements calls.Poster.
func (p *poster) Stale(err error) bool { return errors.Is(err, ErrSessionLost) }

// Left implements calls.Poster.
func (p *poster) Left(err, cause error, effect bool) error {
	var oe *OpError
	if !errors.As(err, &oe) {
		return err
	}
	oe.Cause = cause
	if !effect {
		oe.Certainty, oe.outcome = ErrNotExecuted, nil
	}
	return oe
}

// Interrupted implements calls.Poster.
func (p *poster) Interrupted(op, peer string, cause error, o *calls.Outcome) error {
	certainty := ErrOutcomeUnknown
	if o == nil {
		certainty = ErrNotExecuted
	}
	return &OpError{Op: op, Peer: peer, Certainty: certainty, Cause: cause, outcome: o, stepper: p.stepper}
}

// OpenBox makes a mailbox.
func (d asDialer) OpenBox(attr calls.BoxAttr) (*calls.Box, error) {
	if err := checkBox(&attr); err != nil {
		return nil, errno.Also(err, ErrArgument)
	}
	ep, err := d.NewEndpoint(EndpointAttr{Number: attr.Number, ReceiveSize: attr.Receives,
		BufferedReceive: attr.Buffered,
		TrafficClass:    TrafficClass(attr.TrafficClass), AuthKey: attr.AuthKey, dials: true, mails: true})
	if err != nil {
		return nil, err
	}
	if err := ep.Enable(); err != nil {
		return nil, errno.Join(err, ep.Close())
	}
	m := (*mailed)(ep.endpoint)
	d.keep(m, fmt.Sprintf("mailbox %d", ep.number))
	return calls.NewBox(m, ep.stepper, ep.attr.ReceiveSize), nil
}

// checkBox refuses attributes of a mailbox by the names that they have there.
func checkBox(attr *calls.BoxAttr) error {
	if attr.Buffered > maxBuffered {
		return errno.Refuse(ErrTooBig, "xdpfab: MailboxAttr.Buffered of %d bytes: want at most %d, 0 for %d, or less "+
			"than 0 for none", attr.Buffered, maxBuffered, defaultBuffered)
	}
	_, err := queueSize("MailboxAttr.Receives", attr.Receives)
	return err
}

// mailed is an endpoint as its mailbox knows it.
type mailed endpoint

// Number implements calls.Receiver, as all that follow do.
func (m *mailed) Number() uint16 { return m.number }

func (m *mailed) Name() string { return m.handle.Name() }

// Close closes the peers that were dialled from the mailbox first.
func (m *mailed) Close() error {
	var errs []error
	for _, p := range (*endpoint)(m).dialled() {
		errs = append(errs, p.Close())
	}
	if err := (*endpoint)(m).close(); err != nil {
		return errors.Join(append(errs, err)...)
	}
	m.dom.remove(m)
	return errors.Join(errs...)
}

// dialled returns the open peers that were dialled from the endpoint.
func (ep *endpoint) dialled() (peers []*calls.Peer) {
	ep.dom.mu.Lock()
	defer ep.dom.mu.Unlock()
	for child := range ep.dom.children {
		if p, is := child.(*calls.Peer); is && p.Poster == (*poster)(ep) {
			peers = append(peers, p)
		}
	}
	return peers
}

func (m *mailed) Dial(ctx context.Context, addr string) (*calls.Peer, error) {
	return m.dom.dialFrom(ctx, (*endpoint)(m), addr)
}

func (m *mailed) Receives() (*matching.Queue, error) {
	in, err := (*endpoint)(m).receiving()
	if err != nil {
		return nil, err
	}
	return in.queue, nil
}

func (m *mailed) Posted(err error) error { return m.receiveQueue.posted(err) }

func (m *mailed) Cause(why matching.Reason) error { return receiveErrors[why] }
