// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Send sends a message to the endpoint that was dialled: a [Mailbox], or an endpoint with
// a completion queue for receives. It returns when the message is in the buffer of a
// receive there, or the peer keeps it for one. The program may change b once Send has
// returned. As long as the peer has no room for the message, Send waits, and so does
// everything that is sent after it from the same endpoint to the same one. The context
// ends the wait.
//
// The message arrives exactly once, or the error says what is known of it: of one that
// failed with ErrOutcomeUnknown, [SettleError] may tell whether it has arrived. The
// messages of one goroutine to one peer arrive in the order sent. If the endpoint
// receives no messages, the error is ErrNoReceiver.
func (p *Peer) Send(ctx context.Context, b []byte) error {
	return p.message(ctx, wire.VerbSend, 0, b)
}

// SendTagged is Send for a message with a tag, for a receive that asks for such tags.
func (p *Peer) SendTagged(ctx context.Context, tag uint64, b []byte) error {
	return p.message(ctx, wire.VerbTagged, tag, b)
}

func (p *Peer) message(ctx context.Context, verb wire.Verb, tag uint64, b []byte) error {
	if err := p.there(); err != nil {
		return err
	}
	if len(b) > math.MaxUint32 {
		return errno.Unsent(errno.Refuse(ErrTooMany, "xdpfab: message of %d bytes: want at most %d, send it in parts",
			len(b), math.MaxUint32))
	}
	err := p.to.Do(ctx, calls.Call{Verb: verb, Op: uint8(atomic.Write), Datatype: uint8(atomic.Uint8),
		Count: uint32(len(b)), Key: tag, Operand: b})
	return tookLong(ctx, err, "the peer had not taken the message, perhaps for want of room: have it receive, give "+
		"the context more time, or wait for the outcome by SettleError")
}

// tookLong adds to the error of an operation whose time was up what it waited for, and
// the remedy. Of a peer that is silent more is known.
func tookLong(ctx context.Context, err error, waited string) error {
	var silence *calls.Silence
	oe, is := errors.AsType[*OpError](err)
	if is && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, ErrOutcomeUnknown) &&
		errors.Is(err, context.Cause(ctx)) && !errors.As(err, &silence) {
		oe.Cause = fmt.Errorf("%s: %w", waited, oe.Cause)
	}
	return err
}
