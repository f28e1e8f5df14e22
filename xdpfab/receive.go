// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/matching"
)

// Receive is a receive to post (struct fi_msg, struct fi_msg_tagged).
type Receive struct {
	Buf []byte // where the message goes; the endpoint's until completion
	// Pieces takes the place of Buf if there are several buffers, to be filled one after
	// the other (fi_recvv).
	Pieces [][]byte
	// Tag is what the tag of a message must be, in all bits that are not set in Ignore;
	// of tagged receives.
	Tag, Ignore uint64
	Source      Address // with FlagDirected: the only sender whose messages match
	// Context is returned with the completion. It must be comparable with ==, if Cancel
	// or FlagClaim has to find it.
	Context any
}

// Errors of receives, in their completions or when they are posted.
var (
	ErrTruncated  = reason(ETRUNC, "the message was longer than the buffer")
	ErrNoMessage  = reason(syscall.ENOMSG, "no such message has arrived")
	ErrNotClaimed = reason(syscall.ENOMSG, "no message is claimed for this context: peek with FlagPeek and FlagClaim first")
	ErrNoReceiver = reason(syscall.ENOSYS, "the peer receives no messages: no completion queue is bound with BindRecv to its endpoint, or its version is too old")
)

// ErrNotReceiving is the error of receives on an endpoint that receives no messages.
var ErrNotReceiving = reason(ENOCQ, "no completion queue is bound with BindRecv, or peers cannot address the endpoint")

// Receive posts a buffer for a message that was sent without a tag (fi_recv, fi_recvv,
// fi_recvmsg). A message goes into the receive that was posted first among those that it
// matches; one that matches none is kept, within EndpointAttr.BufferedReceive, and goes
// into the first receive that is posted for it. So messages of one endpoint that match
// the same receives are received in the order sent.
//
// The completion is in the queue bound with BindRecv, where Completion.Bytes is the
// length of the message. Of a message that is longer than the buffer, the buffer has
// the beginning; the completion is an error that wraps ErrTruncated, and
// Completion.Overflow is the number of bytes that are missing.
//
// The flags may be
//
//   - FlagDirected: Receive.Source says whose messages match (FI_DIRECTED_RECV)
//   - FlagMultiRecv: the buffer takes messages one behind another as long as
//     EndpointAttr.MinMultiRecv bytes are free (FI_MULTI_RECV). Each has a completion, with
//     the message at Completion.Offset, and the last one has CompletionMultiRecv
//   - FlagPeek: look for a message that has been kept, and do not receive it (FI_PEEK). The
//     completion has the length, tag, data and source, or is an error that wraps
//     ErrNoMessage. With FlagClaim, nothing but a receive with FlagClaim and the same
//     Context will receive the message; with FlagDiscard, it is dropped
//   - FlagClaim: receive the message that was claimed for the Context, or drop it with
//     FlagDiscard
//   - FlagCompletion, FlagMore, FlagDefaults, which change nothing
//
// The error is about the posting alone: ErrAgain when EndpointAttr.ReceiveSize receives
// are posted, or completions have to be read first; ErrNotReceiving, ErrBadFlags,
// ErrUnknownPeer, ErrTooMany, ErrNotClaimed, ErrNotEnabled, ErrClosed.
func (ep *Endpoint) Receive(r *Receive, flags OpFlags) error { return ep.receive(r, flags, false) }

// ReceiveTagged is Receive for messages with tags (fi_trecv, fi_trecvv, fi_trecvmsg).
func (ep *Endpoint) ReceiveTagged(r *Receive, flags OpFlags) error {
	return ep.receive(r, flags, true)
}

// Cancel takes back the receive that was posted first with the context, unless a message
// is going into it (fi_cancel). It completes with an error that wraps ErrCancelled.
// Cancel returns ErrNoReceive when there is none.
func (ep *Endpoint) Cancel(context any) error {
	q, err := ep.receiving()
	if err != nil {
		return err
	}
	if !q.Cancel(context) {
		return fmt.Errorf("xdpfab: endpoint %d: %w", ep.number, ErrNoReceive)
	}
	return nil
}

// ErrNoReceive is returned by Cancel.
var ErrNoReceive = reason(syscall.ENOENT, "no receive with this context waits for a message")

// receiving returns the queue of receives.
func (ep *Endpoint) receiving() (*matching.Queue, error) {
	if !ep.ready() {
		return nil, ep.unready()
	}
	if ep.receives == nil {
		return nil, fmt.Errorf("xdpfab: endpoint %d receives no messages: %w", ep.number, ErrNotReceiving)
	}
	return ep.receives, nil
}

// receive posts a receive, or peeks.
func (ep *Endpoint) receive(r *Receive, flags OpFlags, tagged bool) error {
	q, err := ep.receiving()
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("xdpfab: the receive is nil: want a Receive: %w", ErrLength)
	}
	if err := flags.checkReceive(); err != nil {
		return err
	}
	x := matching.Receive{Context: r.Context, Match: matching.Match{Tagged: tagged, Tag: r.Tag, Ignore: r.Ignore, AnySource: true}}
	if flags&FlagDirected != 0 && ep.conn == nil { // a connected endpoint has one source
		av := ep.sources()
		if av == nil {
			return fmt.Errorf("xdpfab: endpoint %d cannot tell its sources: %w is bound", ep.number, ErrNoAV)
		}
		entry, err := av.lookup(r.Source)
		if err != nil {
			return err
		}
		x.AnySource, x.From = false, entry.addr
		x.From.Lane = 0
	}
	if flags&(FlagPeek|FlagDiscard) != 0 {
		return ep.peek(q, &x, flags)
	}
	x.Claim, x.Multi, x.MinFree = flags&FlagClaim != 0, flags&FlagMultiRecv != 0, int(ep.minMultiRecv.Load())
	one := [1][]byte{r.Buf}
	if x.Buffers = one[:]; len(r.Pieces) > 0 {
		x.Buffers = r.Pieces
	}
	if len(x.Buffers) > MaxPieces {
		return fmt.Errorf("xdpfab: a receive of %d buffers: want at most %d: %w", len(x.Buffers), MaxPieces, ErrTooMany)
	}
	return ep.posted(q.Post(&x))
}

// posted returns the error of a post in the terms of this package, after it has made
// progress if the caller has to try again.
func (ep *Endpoint) posted(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, matching.ErrFull):
		ep.dom.Progress()
		return ErrAgain
	case errors.Is(err, matching.ErrNotClaimed):
		err = ErrNotClaimed
	case errors.Is(err, matching.ErrClosed):
		err = ErrClosed
	case errors.Is(err, matching.ErrMulti):
		err = ErrMultiRecv
	}
	return fmt.Errorf("xdpfab: endpoint %d: %w", ep.number, err)
}

// ErrMultiRecv is about a receive that cannot be one of many messages.
var ErrMultiRecv = reason(syscall.EINVAL, "a receive with FlagMultiRecv has one buffer, of at least EndpointAttr.MinMultiRecv bytes, and no FlagClaim")

// peek looks for a message that has been kept, and writes a completion that says what was
// found.
func (ep *Endpoint) peek(q *matching.Queue, x *matching.Receive, flags OpFlags) error {
	r := (*inbox)(ep)
	if !r.Take() {
		return ep.posted(matching.ErrFull)
	}
	found := matching.Look
	switch flags & (FlagPeek | FlagClaim | FlagDiscard) {
	case FlagPeek | FlagClaim:
		found = matching.Claim
	case FlagPeek | FlagDiscard:
		found = matching.Discard
	}
	var d matching.Done
	var ok bool
	if flags&FlagPeek != 0 {
		d, ok = q.Peek(&x.Match, found, x.Context)
	} else {
		d, ok = q.Discard(x.Context)
	}
	r.tell(&d, ok)
	return nil
}
