// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/handler"
)

// EndpointAttr are the attributes of an endpoint. The zero value of a field means its
// default.
type EndpointAttr struct {
	// Type is EndpointRDM, or EndpointMsg for an endpoint that is connected to one peer,
	// by Connect or Accept. EndpointUnspec means EndpointRDM.
	Type EndpointType
	// Request is the request that an endpoint of type EndpointMsg is made to accept; nil
	// for one that connects (handle of fi_info).
	Request *ConnRequest
	// Number is the number by which peers address the endpoint on its node; 0 is the one
	// that they address by default. AnyNumber picks a free one.
	Number int
	// Size is the most operations that may be in flight; as many again may wait in the
	// submission queue for the engine to take them. It is rounded up to a power of two;
	// 1024. An operation makes room a moment after its completion can be read.
	Size int
	// InjectSize is the number of bytes of operands that must fit into an operation, so
	// that its buffers may be reused when the call returns (inject_size). To ask for more
	// than fit is an error; Endpoint.Attr returns how many fit.
	InjectSize int
	// OpFlags are what FlagDefaults stands for (op_flags): some of FlagInject,
	// FlagCompletion and the levels of completion.
	OpFlags OpFlags
	// MsgOrder is the order of the endpoint's operations to one peer (msg_order): all
	// orders that xdpfab has, even if only some are asked for, or OrderNone. With that,
	// an operation waits for none posted before it, unless FlagFence says so, and a
	// packet that gets lost holds up no operation but its own. A peer of an older version
	// keeps the order all the same.
	MsgOrder Order
	// TrafficClass marks the endpoint's packets, and the answers to them (tclass);
	// TrafficUnspec leaves it to DomainAttr.TrafficClass.
	TrafficClass TrafficClass
	// ReceiveSize is the most receives that may be posted, and the most messages that may
	// be kept for which none is (size of fi_rx_attr); 1024. It counts only with a queue
	// that is bound with BindRecv.
	ReceiveSize int
	// BufferedReceive is the number of bytes of memory for messages for which no receive
	// is posted (total_buffered_recv); 4 MiB. It is allocated as it is needed. A message
	// of at most 64 bytes takes none of it. Negative keeps no longer messages: their
	// senders wait until a receive is posted.
	BufferedReceive int
	// MinMultiRecv is the number of free bytes below which a buffer with FlagMultiRecv
	// takes no more messages (FI_OPT_MIN_MULTI_RECV); 64.
	MinMultiRecv int
	// ReceiveFlags are what FlagDefaults stands for in receives (op_flags of fi_rx_attr):
	// some of FlagMultiRecv and FlagCompletion.
	ReceiveFlags OpFlags
	// SourceErr makes the completion of a peer's message or operation one with an error,
	// ErrUnknownPeer, if the peer is not in the address vector, which has to be bound
	// (FI_SOURCE_ERR). Nothing else has failed: all other fields are as ever, and
	// OpError.Peer is the address, to be inserted. A peer that is inserted before the
	// completion is read is known.
	SourceErr bool
	// AuthKey is the endpoint's authorization key (auth_key); none leaves it to
	// DomainAttr.AuthKey.
	AuthKey AuthKey
	Context any // comes back with each event about the endpoint
	// InitiateOnly makes an endpoint that peers cannot address.
	InitiateOnly bool

	dials bool // the endpoint is the domain's or a mailbox's own, for Dial
	mails bool // the endpoint is a mailbox's own
	part  part // of a scalable endpoint

	handler *handler.Handler // answers requests to the endpoint; nil for none
}

// AnyNumber asks for an endpoint number that is free.
const AnyNumber = -1

// injectSize is the number of bytes of operands that fit into an operation.
const injectSize = engine.InlineLen

// Queues of both kinds have a default size and a greatest size.
const (
	defaultQueue = 1024
	maxQueue     = 1 << 20
)

// withDefaults checks the attributes, all but the number, and fills in the true values.
// What it refuses is an ErrArgument, besides another cause.
func (a EndpointAttr) withDefaults() (EndpointAttr, error) {
	a, err := a.checked()
	return a, errno.Also(err, ErrArgument)
}

func (a EndpointAttr) checked() (_ EndpointAttr, err error) {
	if err := a.checkType(); err != nil {
		return a, err
	}
	if a.InjectSize < 0 || a.InjectSize > injectSize {
		return a, errno.Refuse(ErrTooBig, "xdpfab: endpoint: InjectSize of %d bytes: want 0..%d", a.InjectSize,
			injectSize)
	}
	if err := a.OpFlags.check("endpoint: default flags", defaultFlags); err != nil {
		return a, err
	}
	if err := a.MsgOrder.check(); err != nil {
		return a, fmt.Errorf("xdpfab: endpoint: %w", err)
	}
	if err := errno.Join(a.TrafficClass.check("endpoint"), a.AuthKey.check("endpoint")); err != nil {
		return a, err
	}
	if a.SourceErr && (a.InitiateOnly || a.Type == EndpointMsg) {
		return a, errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint: unknown sources as errors, of an endpoint that no peer can address "+
				"or that has one peer: want one or the other left out")
	}
	if err := a.receiveDefaults(); err != nil {
		return a, err
	}
	a.InjectSize, a.MsgOrder = injectSize, a.MsgOrder.settle()
	a.Size, err = queueSize("endpoint: Size", a.Size)
	return a, err
}

// The defaults of receives.
const (
	defaultBuffered     = 4 << 20
	maxBuffered         = 1 << 30
	defaultMinMultiRecv = 64
)

// receiveDefaults checks the attributes of receives and fills in the defaults.
func (a *EndpointAttr) receiveDefaults() (err error) {
	if err := a.ReceiveFlags.check("endpoint: default flags of receives", defaultReceiveFlags); err != nil {
		return err
	}
	switch {
	case a.BufferedReceive > maxBuffered:
		return errno.Refuse(ErrTooBig, "xdpfab: endpoint: BufferedReceive of %d bytes: want at most %d, 0 for %d, or "+
			"less than 0 for none", a.BufferedReceive, maxBuffered, defaultBuffered)
	case a.MinMultiRecv < 0:
		return errno.Refuse(ErrCount,
			"xdpfab: endpoint: MinMultiRecv of %d bytes: want at least 1, or 0 for %d",
			a.MinMultiRecv, defaultMinMultiRecv)
	case a.BufferedReceive == 0:
		a.BufferedReceive = defaultBuffered
	}
	if a.MinMultiRecv == 0 {
		a.MinMultiRecv = defaultMinMultiRecv
	}
	a.ReceiveSize, err = queueSize("endpoint: ReceiveSize", a.ReceiveSize)
	return err
}

// checkType checks the type of the endpoint, and fills it in.
func (a *EndpointAttr) checkType() error {
	if a.Type == EndpointUnspec {
		a.Type = EndpointRDM
	}
	switch {
	case a.Type != EndpointRDM && a.Type != EndpointMsg:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint of type %v: want %v or %v", a.Type, EndpointRDM, EndpointMsg)
	case a.Type == EndpointMsg && (a.InitiateOnly || a.part.of != nil):
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint of type %v that is InitiateOnly, or a context of a scalable endpoint: want neither",
			a.Type)
	case a.Type != EndpointMsg && a.Request != nil:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint of type %v for a request: want %v", a.Type, EndpointMsg)
	}
	return nil
}

// queueSize returns the size of a queue for the size that is asked for: a power of two.
func queueSize(of string, size int) (int, error) {
	switch {
	case size < 0 || size > maxQueue:
		return 0, errno.Refuse(ErrCount, "xdpfab: %s of %d: want 1..%d, or 0 for %d", of, size, maxQueue,
			defaultQueue)
	case size == 0:
		return defaultQueue, nil
	}
	return max(2, 1<<bits.Len(uint(size-1))), nil
}
