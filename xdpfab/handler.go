// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"math"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Handler is an endpoint whose function answers the requests of [Peer.Call]: see
// [Domain.Handle].
type Handler struct{ h calls.Handler }

// HandlerAttr are the attributes of a handler. The zero value of a field means its
// default.
type HandlerAttr struct {
	// Number is the endpoint number by which peers dial the handler, 0 to 65535. It is an
	// int since AnyNumber, -1, picks a free one. 0 is taken where Serve or a daemon
	// serves regions.
	Number int
	// Requests is the most requests that are held at a time: those that the function has,
	// those that wait for it, and those whose replies are about to be sent; 1024, 65536
	// at most. The peers at one address have as many at most as are left for all others:
	// half of them, if there are no others. A request beyond that is refused with
	// ErrBusy.
	Requests int
	// Goroutines is the most calls of the function at a time, Requests at most; 256, or
	// Requests if that is less. A function that does not return keeps one of them.
	Goroutines int

	TrafficClass fi.TrafficClass // as EndpointAttr.TrafficClass
	AuthKey      fi.AuthKey      // as EndpointAttr.AuthKey
}

// mostRequests is the most requests that a handler may hold.
const mostRequests = 1 << 16

// withDefaults checks the attributes, and fills in the true values.
func (a HandlerAttr) withDefaults() (HandlerAttr, error) {
	const requests, goroutines = 1024, 256
	switch {
	case a.Requests < 0 || a.Requests > mostRequests:
		return a, errno.Refuse(ErrArgument, "xdpfab: HandlerAttr.Requests of %d: want 1..%d, or 0 for %d", a.Requests,
			mostRequests, requests)
	case a.Goroutines < 0:
		return a, errno.Refuse(ErrArgument, "xdpfab: HandlerAttr.Goroutines of %d: want at least 1, or 0 for %d",
			a.Goroutines, goroutines)
	}
	if a.Requests == 0 {
		a.Requests = requests
	}
	if a.Goroutines == 0 {
		a.Goroutines = min(goroutines, a.Requests)
	}
	if a.Goroutines > a.Requests {
		return a, errno.Refuse(ErrArgument, "xdpfab: HandlerAttr.Goroutines of %d: want at most HandlerAttr.Requests, "+
			"which is %d, or more Requests", a.Goroutines, a.Requests)
	}
	return a, nil
}

// Handle makes a handler, which peers can call from now on. The function runs on
// goroutines of its own, for many requests at a time, and gets each request once. With
// automatic progress, unless DomainAttr.Cores names cores, one of them makes the domain's
// progress while it waits for a request, so an answer takes one round trip and no change
// of threads:
//
//   - from is the node that the request came from. Its endpoint takes no messages.
//   - request is valid until the function returns. The reply is copied then, so it may be
//     in the request, or in memory that the function uses again.
//   - The caller gets the reply, or a [FunctionError] with the text of the error. A panic
//     is such an error, too, and ends nothing else.
//   - ctx ends when the session of the caller has ended, so that nobody gets the reply, or
//     the handler is closed. It does not end with the context of the caller.
//
// Request and reply have to fit into one frame each: 1452 bytes of request and 1452 of
// reply at an MTU of 1500, 28 or 48 less over UDP. A program behind a daemon has handlers
// as any other. Its calls survive a takeover of the daemon, and end with the program.
func (d *Domain) Handle(attr HandlerAttr, f func(ctx context.Context, from Sender, request []byte) ([]byte,
	error)) (*Handler, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	attr, err := attr.withDefaults()
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errno.Refuse(ErrArgument, "xdpfab: Handle without a function: want one")
	}
	h, err := calls.Of(d.Domain).OpenHandler(calls.HandlerAttr{Number: attr.Number, Requests: attr.Requests,
		Goroutines: attr.Goroutines, TrafficClass: uint16(attr.TrafficClass), AuthKey: attr.AuthKey,
		Function: func(ctx context.Context, from wire.Addr, request []byte) ([]byte, error) {
			return f(ctx, Sender{from}, request)
		}})
	if err != nil {
		return nil, err
	}
	return &Handler{h}, nil
}

// Number returns the handler's endpoint number.
func (h *Handler) Number() uint16 {
	if h == nil || h.h == nil {
		return 0
	}
	return h.h.Number()
}

// Name returns the address at which peers dial the handler: a MAC address, or with
// TransportUDP an IP address, and the number.
func (h *Handler) Name() string {
	if h == nil || h.h == nil {
		return ""
	}
	return h.h.Name()
}

// Close ends the handler. The function gets no more requests: callers of those that wait
// for it get ErrNotExecuted. The contexts of those that it has end. Close does not wait
// for them, so that the function may call it. Their callers get ErrOutcomeUnknown, or the
// reply if the function returns as soon as its context ends. The caller of a function
// that closes its own handler gets ErrOutcomeUnknown in any case: its session has ended
// before the function can return. Closing twice is no error.
func (h *Handler) Close() error {
	if h == nil || h.h == nil {
		return none("Handler", "Domain.Handle")
	}
	return h.h.Close()
}

// FunctionError is what the function of a handler has returned in place of a reply: it
// ran, once.
type FunctionError struct {
	Peer  string // as it was dialled
	Text  string // of the error, or of the panic's value, as far as there is room for it
	Panic bool   // the function panicked, or ended its goroutine
}

// Error implements error.
func (e *FunctionError) Error() string {
	if e.Panic {
		return errno.Line("xdpfab: the function of %s panicked: %s", e.Peer, e.Text).Error()
	}
	return errno.Line("xdpfab: the function of %s: %s", e.Peer, e.Text).Error()
}

// textRoom is the room for the text of an error, if the reply has less, bytes.
const textRoom = 256

// Call has the function of a [Handler], which was dialled, answer a request, and puts its
// reply into reply. It returns the length of the whole reply; if that is longer than
// reply or a frame, the error wraps ErrTruncated, and reply has its beginning.
//
// The function has the request once, or the error says what is known, as of any
// operation: ErrNotExecuted, ErrOutcomeUnknown, ErrPeerRestarted. A [FunctionError] means
// that it ran. The target refuses a request as not executed, with the cause ErrBusy, when
// it holds as many as it may; that alone is worth another attempt. [Settle] takes the two
// results of Call; if the reply has come after all, it puts that into reply.
//
// The calls of a domain to one handler are in no order: they have a session of their own,
// in which each lost frame delays its own call alone. 64 at a time are under way, and at
// most 63 begin and end while an earlier one waits; the next ones wait for that.
func (p *Peer) Call(ctx context.Context, request, reply []byte) (n int, err error) {
	if err := p.there(); err != nil {
		return 0, err
	}
	if len(request) > p.longest() {
		return 0, p.tooLong(request)
	}
	to, err := p.to.Caller(ctx)
	if err != nil { // the request has not been sent
		return 0, errno.Unsent(err)
	}
	var short [wire.ReplyHead + textRoom]byte
	result := short[:]
	if len(reply) > textRoom {
		result = make([]byte, wire.ReplyHead+min(len(reply), math.MaxUint16))
	}
	switch err = to.Request(ctx, request, result); {
	case err == nil:
		return p.open(result, reply)
	case errors.Is(err, ErrCount):
		return 0, p.tooLong(request)
	}
	var oe *OpError
	if errors.As(err, &oe) {
		switch {
		case errors.Is(err, ErrOpNotSupported):
			oe.Cause = errno.Refuse(ErrOpNotSupported,
				"the peer answers no calls at this endpoint: want the number of a Handler")
		case errors.Is(err, ErrOutcomeUnknown):
			_ = tookLong(ctx, err, "the function had not replied: give the context more time, or wait for the reply "+
				"by Settle") // it changes oe
			err = &unsettledCall{oe, p, reply}
		}
	}
	return 0, err
}

// longest returns how many bytes of a request, or of a reply, a frame has room for, if
// the MTU at the other end is not smaller.
func (p *Peer) longest() int {
	const heads = wire.HeaderLen + wire.CallHead
	frame := p.to.Node.Dev.MTU() - p.to.Peer.Link().Kind.Overhead()
	return (frame - heads) &^ 3 // a record is a multiple of 4 bytes
}

// tooLong is the error of a request that no frame can hold.
func (p *Peer) tooLong(request []byte) error {
	return errno.Refuse(ErrTooMany, "xdpfab: request of %d bytes to %s: %w: it has to fit into one frame: want at "+
		"most %d bytes, which an MTU of %d leaves, or less if the peer has a smaller one", len(request), p.to.Name,
		ErrNotExecuted, p.longest(), p.to.Node.Dev.MTU())
}

// open takes the reply out of the result of a call.
func (p *Peer) open(result, reply []byte) (n int, err error) {
	r := engine.ReplyOf(result)
	if r.Kind != wire.ReplyOK {
		return 0, &FunctionError{p.to.Name, string(r.Bytes), r.Kind == wire.ReplyPanic}
	}
	n = int(min(uint64(r.Length), math.MaxInt))
	got := copy(reply, r.Bytes)
	if got == n {
		return n, nil
	}
	most := p.longest()
	if got < len(reply) { // a frame of the peer took no more
		most = got
	}
	if n > most {
		return n, errno.Refuse(ErrTruncated, "xdpfab: reply of %d bytes from %s, %d of which have come: one frame "+
			"takes at most %d: have the function reply with no more, and give a buffer of as many", n, p.to.Name, got,
			most)
	}
	return n, errno.Refuse(ErrTruncated, "xdpfab: reply of %d bytes from %s, %d of which have come: give a buffer of "+
		"%d bytes", n, p.to.Name, got, n)
}

// unsettledCall is the failure of a call whose outcome is unknown: see Settle.
type unsettledCall struct {
	failure *OpError
	p       *Peer
	reply   []byte
}

func (u *unsettledCall) Error() string { return u.failure.Error() }

// Unwrap returns the OpError.
func (u *unsettledCall) Unwrap() error { return u.failure }

func (u *unsettledCall) settle(ctx context.Context) (n int, err error) {
	result, err := outcome(ctx, u.failure, u)
	if err == nil {
		n, err = u.p.open(result, u.reply)
	}
	return n, err
}

func (u *unsettledCall) settleError(ctx context.Context) error {
	_, err := u.settle(ctx)
	return err
}
