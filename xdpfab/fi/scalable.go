// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
)

// ScalableEndpoint is an endpoint with several transmit and receive contexts
// (fi_scalable_ep). Each context is an Endpoint with its own queue, counters and order of
// operations; transmit contexts are spread over the queues of the domain, so that
// goroutines that post by different ones do not meet.
//
// Peers address it by one address, which is also that of the first receive context, and
// the others by RXAddress. What they do is counted by the counters of the receive context
// that they address; they reach the same memory by all of them.
type ScalableEndpoint struct {
	dom   *Domain
	attr  ScalableAttr
	first int         // the queue of transmit context 0
	block *node.Block // the numbers of the receive contexts

	mu     sync.Mutex
	av     *AddressVector
	tx, rx []*endpoint // nil, or the latest of its index
	closed bool
}

// ScalableAttr are the attributes of a scalable endpoint. The zero value of a field means
// its default.
type ScalableAttr struct {
	// Number is the number by which peers address the endpoint. As many follow it as
	// there are more receive contexts. AnyNumber picks numbers that are free.
	Number     int
	TXContexts int // tx_ctx_cnt, 1..MaxContexts; the queues of the domain
	RXContexts int // rx_ctx_cnt, 1..MaxContexts; 1
}

// withDefaults checks the numbers of contexts and fills in the defaults.
func (a ScalableAttr) withDefaults(queues int) (ScalableAttr, error) {
	for what, n := range map[string]*int{"transmit": &a.TXContexts, "receive": &a.RXContexts} {
		if *n < 0 || *n > MaxContexts {
			return a, errno.Refuse(ErrCount,
				"xdpfab: scalable endpoint with %d %s contexts: want 1..%d, or 0 for the default",
				*n, what, MaxContexts)
		}
	}
	if a.TXContexts == 0 {
		a.TXContexts = min(queues, MaxContexts)
	}
	if a.RXContexts == 0 {
		a.RXContexts = 1
	}
	return a, nil
}

// NewScalableEndpoint makes a scalable endpoint (fi_scalable_ep). Bind an address vector,
// and make its contexts.
func (d *Domain) NewScalableEndpoint(attr ScalableAttr) (*ScalableEndpoint, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	defer d.stay()()
	attr, err := attr.withDefaults(len(d.node.Steppers))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	numbers, err := d.pickBlock(attr.Number, attr.RXContexts)
	if err != nil {
		return nil, err
	}
	attr.Number = numbers.First
	s := &ScalableEndpoint{dom: d, attr: attr, first: d.node.TakeTurns(attr.TXContexts), block: numbers,
		tx: make([]*endpoint, attr.TXContexts), rx: make([]*endpoint, attr.RXContexts)}
	d.children[s] = fmt.Sprintf("scalable endpoint %d", attr.Number)
	return s, nil
}

// pickBlock checks or chooses as many numbers of endpoints, one after the other, and
// reserves them. d.mu is held.
func (d *Domain) pickBlock(number, length int) (*node.Block, error) {
	first, given, err := d.node.Dev.Block(number, length)
	switch {
	case err != nil:
		return nil, fmt.Errorf("xdpfab: scalable endpoint: %w", err)
	case given:
		return d.node.Numbers.Adopt(first, length), nil
	}
	return d.node.Numbers.Reserve(number, length)
}

// Attr returns the attributes in force.
func (s *ScalableEndpoint) Attr() ScalableAttr { return s.attr }

// Name returns the address of the endpoint on its Ethernet segment (fi_getname).
func (s *ScalableEndpoint) Name() string { return s.dom.Name(uint16(s.attr.Number)) }

// Bind gives all transmit contexts an address vector (fi_scalable_ep_bind). Queues and
// counters are bound to each context.
func (s *ScalableEndpoint) Bind(av *AddressVector) error {
	if err := s.there(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return s.errClosed()
	case av == nil || av.dom != s.dom:
		return errno.Refuse(ErrForeign,
			"xdpfab: scalable endpoint %d: the address vector is nil, or of another domain: want one of %s",
			s.attr.Number,
			s.dom.label())
	case s.av != nil:
		return errno.Refuse(ErrBusy,
			"xdpfab: scalable endpoint %d: an address vector is bound already: want only one",
			s.attr.Number)
	}
	if err := av.hold(); err != nil {
		return err
	}
	s.av = av
	return nil
}

// TransmitContext makes the transmit context of an index (fi_tx_context): an endpoint
// that posts, with the address vector of the scalable endpoint, and that peers cannot
// address. Bind a queue or counters, and Enable it. attr has the sizes and flags; its
// Number and InitiateOnly mean nothing here and must be zero.
func (s *ScalableEndpoint) TransmitContext(index int, attr EndpointAttr) (*Endpoint, error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	if attr.Number != 0 || attr.InitiateOnly {
		return nil, errno.Refuse(ErrNotImplemented,
			"xdpfab: transmit context %d: with Number %d and InitiateOnly %t: want them zero",
			index, attr.Number, attr.InitiateOnly)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.av == nil {
		return nil,
			fmt.Errorf("xdpfab: scalable endpoint %d: %w is bound: bind one before the transmit contexts are made",
				s.attr.Number, ErrNoAV)
	}
	attr.Number, attr.InitiateOnly = AnyNumber, true
	attr.part = part{of: s, queue: s.first + index, posts: true}
	return s.context(s.tx, "transmit", index, attr)
}

// ReceiveContext makes the receive context of an index (fi_rx_context): an endpoint that
// peers address by RXAddress, and that does not post. Counters with BindRemoteRead and
// BindRemoteWrite can be bound to it, and a completion queue with BindRecv, whose entries
// name their sources by the address vector of the scalable endpoint. Enable it.
func (s *ScalableEndpoint) ReceiveContext(index int) (*Endpoint, error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	attr := EndpointAttr{Number: s.attr.Number + index, Size: 2, part: part{of: s, queue: s.first + index}}
	return s.context(s.rx, "receive", index, attr)
}

// context makes a context, unless there is one. s.mu is held.
func (s *ScalableEndpoint) context(list []*endpoint, kind string, index int, attr EndpointAttr) (*Endpoint, error) {
	switch {
	case s.closed:
		return nil, s.errClosed()
	case index < 0 || index >= len(list):
		return nil, errno.Refuse(ErrCount, "xdpfab: %s context %d of scalable endpoint %d: want 0..%d", kind, index,
			s.attr.Number, len(list)-1)
	case list[index].isOpen():
		return nil,
			errno.Refuse(ErrBusy,
				"xdpfab: %s context %d of scalable endpoint %d is open: close it before it is made again",
				kind, index, s.attr.Number)
	}
	ep, err := s.dom.NewEndpoint(attr)
	if err != nil {
		return nil, err
	}
	list[index] = ep.endpoint
	if attr.part.posts {
		return ep, ep.bindPart(s.av)
	}
	return ep, nil
}

func (ep *endpoint) isOpen() bool { return ep != nil && ep.phase.Load() != shutOff }

// bindPart binds the address vector of the scalable endpoint.
func (ep *endpoint) bindPart(av *AddressVector) error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return av.bindTo(ep, 0)
}

func (s *ScalableEndpoint) errClosed() error {
	return s.dom.errClosed(fmt.Sprintf("scalable endpoint %d", s.attr.Number), anew)
}

// Close ends the use of the endpoint. It reports ErrBusy as long as any of its contexts
// is open. Closing twice is no error.
func (s *ScalableEndpoint) Close() error {
	if err := s.there(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for kind, list := range map[string][]*endpoint{"transmit": s.tx, "receive": s.rx} {
		for i, ep := range list {
			if ep.isOpen() {
				return errno.Refuse(ErrBusy, "xdpfab: scalable endpoint %d: %s context %d is open: close it first",
					s.attr.Number, kind, i)
			}
		}
	}
	s.closed = true
	if s.av != nil {
		s.av.drop()
	}
	s.dom.node.Dev.ReleaseNumbers(uint16(s.attr.Number))
	s.dom.mu.Lock()
	defer s.dom.mu.Unlock()
	s.dom.node.Numbers.Unreserve(s.block)
	delete(s.dom.children, s)
	s.dom.node.Dev.GiveBack(uint16(s.attr.Number), len(s.rx))
	return nil
}

// part is what an endpoint is of a scalable one; zero if it stands alone.
type part struct {
	of    *ScalableEndpoint
	queue int  // of the domain, modulo their number
	posts bool // it is a transmit context, and otherwise a receive context
}

// source returns the number by which peers know an endpoint that posts.
func (ep *endpoint) source() uint16 {
	if p := ep.attr.part; p.posts {
		return uint16(p.of.attr.Number)
	}
	return ep.number
}

// sources returns the vector in which the peers that post to the endpoint have their
// addresses, or nil.
func (ep *endpoint) sources() *AddressVector {
	if p := ep.attr.part; p.of != nil && !p.posts {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		return p.of.av
	}
	return ep.av
}

// mayBind returns an error for an object that a context has no use for.
func (p part) mayBind(b Bindable, flags BindFlags) error {
	if p.of == nil {
		return nil
	}
	_, isCounter := b.(*Counter)
	_, isEvents := b.(*EventQueue)
	_, isQueue := b.(*CompletionQueue)
	switch {
	case p.posts && isQueue && flags&BindRecv != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: transmit context: flags %v: peers cannot address it, so bind a queue for their "+
				"events to a receive context", flags)
	case p.posts && flags&remoteFlags != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: transmit context: flags %v: peers cannot address it, so bind counters of theirs "+
				"to a receive context", flags)
	case !p.posts && isCounter && flags&ownFlags != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: receive context: flags %v: it posts nothing, so want some of %v", flags,
			remoteFlags)
	case !p.posts && isQueue && flags != BindRecv:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: receive context: flags %v: it posts nothing, so want %v", flags, BindRecv)
	case !p.posts && !isCounter && !isEvents && !isQueue:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: receive context: it posts nothing, so want counters or a queue of what peers do, "+
				"or an event queue")
	}
	return nil
}
