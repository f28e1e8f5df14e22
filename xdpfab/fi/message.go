// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"
	"fmt"
	"reflect"
	"syscall"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Message is a message to send (struct fi_msg, struct fi_msg_tagged). It may have any
// length up to 4 GiB less one byte, or none.
type Message struct {
	Buf []byte
	// Pieces takes the place of Buf if the bytes lie in several buffers, one after the
	// other (fi_sendv). It has at most MaxPieces buffers, and like those it must stay
	// untouched until completion.
	Pieces [][]byte

	Dest    Address
	Tag     uint64 // of a tagged message
	Data    uint64 // with FlagRemoteCQData: for the completion of the receive; otherwise ignored
	Context any    // returned with the completion

	// Trigger, if it is not nil, defers the message; see Msg.Trigger.
	Trigger *Threshold

	work *Work // that the message is the part of
}

// Send posts a message, which goes into the buffer of a receive at the target endpoint
// (fi_send, fi_sendv, fi_sendmsg; fi_senddata with FlagRemoteCQData). The buffers must
// stay untouched until completion, unless they have at most EndpointAttr.InjectSize bytes
// and FlagInject is given. The Message itself may be reused when the call returns, here
// and in the other forms.
//
// A message has one completion, as any operation. Success means that it is in the buffer
// of a receive, or that the target keeps it for one; with FlagMatchComplete, the former.
// Messages that the target has no room to keep, and everything posted behind them to the
// same endpoint, wait until a receive is posted, for as long as the target lives. If the
// target endpoint receives no messages, the message fails with ErrNoReceiver.
//
// The error is about the posting alone, as that of Endpoint.Atomic is.
func (ep *Endpoint) Send(m *Message, flags OpFlags) error { return ep.send(wire.VerbSend, m, flags, 0) }

// SendTagged is Send for a message with a tag, which goes into the buffer of a tagged
// receive that asks for such tags (fi_tsend, fi_tsendv, fi_tsendmsg; fi_tsenddata with
// FlagRemoteCQData).
func (ep *Endpoint) SendTagged(m *Message, flags OpFlags) error {
	return ep.send(wire.VerbTagged, m, flags, 0)
}

// InjectSend is Send for at most EndpointAttr.InjectSize bytes: the buffers may be reused
// on return, and success makes no completion, though counters count it (fi_inject). A
// failure does make one.
func (ep *Endpoint) InjectSend(m *Message) error {
	return ep.send(wire.VerbSend, m, FlagInject, silent)
}

// InjectSendData is InjectSend with Message.Data (fi_injectdata).
func (ep *Endpoint) InjectSendData(m *Message) error {
	return ep.send(wire.VerbSend, m, FlagInject|FlagRemoteCQData, silent)
}

// InjectTagged is InjectSend for a tagged message (fi_tinject).
func (ep *Endpoint) InjectTagged(m *Message) error {
	return ep.send(wire.VerbTagged, m, FlagInject, silent)
}

// InjectTaggedData is InjectTagged with Message.Data (fi_tinjectdata).
func (ep *Endpoint) InjectTaggedData(m *Message) error {
	return ep.send(wire.VerbTagged, m, FlagInject|FlagRemoteCQData, silent)
}

// send posts a message.
func (ep *Endpoint) send(verb wire.Verb, m *Message, flags OpFlags, cookie uint64) error {
	switch {
	case ep == nil || ep.endpoint == nil:
		return ep.there()
	case m == nil:
		return errno.Refuse(ErrLength, "xdpfab: the message is nil: want a Message")
	case ep.phase.Load() == made: // Bind may be at work on what is read below
		return ep.unready()
	case ep.cq == nil && ep.cntr[sends] == nil && !ep.attr.dials:
		return errno.Refuse(ErrNoCQ,
			"xdpfab: endpoint %d can send no messages, as nothing would tell of a failure: bind a "+
				"completion queue, or a counter with BindTransmit",
			ep.number)
	}
	x := Msg{Buf: m.Buf, Dest: m.Dest, Key: m.Tag,
		Datatype: atomic.Uint8, Op: atomic.Write, Context: m.Context, Data: m.Data,
		Trigger: m.Trigger, work: m.work}
	if len(m.Pieces) > 0 {
		x.Pieces = piecesOf(verb, m.Pieces)
	}
	return ep.post(verb, &x, flags, cookie)
}

// Receive is a receive to post (struct fi_msg, struct fi_msg_tagged).
type Receive struct {
	Buf []byte // where the message goes; the endpoint's until completion
	// Pieces takes the place of Buf if there are several buffers, to be filled one after
	// the other (fi_recvv).
	Pieces [][]byte
	// Tag is what the tag of a message must be, in all bits that are not set in Ignore;
	// of tagged receives.
	Tag, Ignore uint64
	// Source, with FlagDirected, is the only sender whose messages match, if its messages
	// come by the kind of address that this is; NoAddress means all.
	Source Address
	// Context is returned with the completion. Where it has to be found, by Cancel and
	// with FlagClaim, it must be comparable with ==.
	Context any
}

// Errors of receives, in their completions or when they are posted.
var (
	ErrTruncated  = reason(ETRUNC, "the message was longer than the buffer")
	ErrNoMessage  = reason(syscall.ENOMSG, "no such message has arrived")
	ErrNotClaimed = reason(syscall.ENOMSG,
		"no message is claimed for this context: peek with FlagPeek and FlagClaim first")
	ErrContext    = reason(syscall.EINVAL, "the context cannot be found, as it is not comparable with ==")
	ErrNoReceiver = reason(syscall.ENOSYS, "the peer receives no messages at this endpoint: want the number of a "+
		"mailbox, as in 10.0.0.2/5, or of an endpoint of package fi with a queue that BindRecv bound")
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
// number of bytes in the buffer. Of a message that is longer than the buffer, the buffer
// has the beginning; the completion is an error that wraps ErrTruncated, and
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
//     ErrNoMessage. No bytes are returned. With FlagClaim, nothing but a receive with FlagClaim and the same
//     Context will receive the message; with FlagDiscard, it is dropped
//   - FlagClaim: receive the message that was claimed for the Context, or drop it with
//     FlagDiscard
//   - FlagDefaults: in addition those of EndpointAttr.ReceiveFlags
//   - FlagCompletion: make an entry of success, too, in a queue that is bound with
//     BindSelective
//   - FlagMore, which changes nothing
//
// The error is about the posting alone: ErrAgain when EndpointAttr.ReceiveSize receives
// are posted, or completions have to be read first; ErrNotReceiving, ErrBadFlags,
// ErrUnknownPeer, ErrTooMany, ErrLength, ErrMultiRecv, ErrNotClaimed, ErrContext,
// ErrNotEnabled, ErrClosed.
func (ep *Endpoint) Receive(r *Receive, flags OpFlags) error { return ep.receive(r, flags, false) }

// ReceiveTagged is Receive for messages with tags (fi_trecv, fi_trecvv, fi_trecvmsg).
func (ep *Endpoint) ReceiveTagged(r *Receive, flags OpFlags) error {
	return ep.receive(r, flags, true)
}

func (ep *Endpoint) receive(r *Receive, flags OpFlags, tagged bool) error {
	if err := ep.there(); err != nil {
		return err
	}
	in, err := ep.usableQueue()
	if err != nil {
		return err
	}
	return in.receive(r, flags, tagged)
}

// Cancel takes back the receive that was posted first with the context, unless a message
// is going into it (fi_cancel). It completes with an error that wraps ErrCancelled.
// Cancel returns ErrNoReceive when there is none.
func (ep *Endpoint) Cancel(context any) error {
	if err := ep.there(); err != nil {
		return err
	}
	in, err := ep.usableQueue()
	if err != nil {
		return err
	}
	return in.cancel(context)
}

// usableQueue returns the receive queue that receives are posted to by this handle.
func (ep *Endpoint) usableQueue() (*receiveQueue, error) {
	if ep.ended.Load() {
		return nil, ep.errEnded()
	}
	return ep.receiving()
}

// receiving returns the receive queue of the endpoint.
func (ep *endpoint) receiving() (*receiveQueue, error) {
	switch {
	case !ep.ready():
		return nil, ep.unready()
	case ep.receiveQueue == nil:
		return nil, fmt.Errorf("xdpfab: endpoint %d receives no messages: %w", ep.number, ErrNotReceiving)
	case ep.receiveQueue.ep != ep:
		return nil, errno.Refuse(ErrNotReceiving,
			"xdpfab: endpoint %d shares its receives: post them to the shared receive context",
			ep.number)
	}
	return ep.receiveQueue, nil
}

// findable returns an error for a context that cannot be compared with others. One that
// can be compared can be compared with any other.
func findable(context any) error {
	if context == nil || reflect.ValueOf(context).Comparable() {
		return nil
	}
	return fmt.Errorf("xdpfab: context of type %T: %w: use a pointer", context, ErrContext)
}

// ErrNoReceive is returned by Cancel.
var ErrNoReceive = reason(syscall.ENOENT, "no receive with this context waits for a message")

// cancel is Endpoint.Cancel.
func (in *receiveQueue) cancel(context any) error {
	if err := findable(context); err != nil {
		return err
	}
	in.dom.node.Dev.CatchUp(in.dom.node.Steppers[0]) // a message may have come for it
	if !in.queue.Cancel(context) {
		return fmt.Errorf("xdpfab: %s: %w", in.what, ErrNoReceive)
	}
	return nil
}

// receive posts a receive, or peeks.
func (in *receiveQueue) receive(r *Receive, flags OpFlags, tagged bool) error {
	if r != nil && flags&FlagDefaults != 0 {
		flags = flags&^FlagDefaults | in.flags
	}
	var x matching.Receive
	if err := in.describe(&x, r, flags, tagged); err != nil {
		return err
	}
	switch flags & (FlagPeek | FlagClaim | FlagDiscard) {
	case FlagPeek, FlagPeek | FlagClaim, FlagPeek | FlagDiscard:
		return in.peek(&x, flags)
	case FlagClaim | FlagDiscard:
		return in.dropClaimed(r.Context)
	}
	return in.posted(in.queue.Post(&x))
}

// describe checks a receive, and puts it in the terms of package matching.
func (in *receiveQueue) describe(x *matching.Receive, r *Receive, flags OpFlags, tagged bool) error {
	if r == nil {
		return errno.Refuse(ErrLength, "xdpfab: the receive is nil: want a Receive")
	}
	if err := flags.checkReceive(); err != nil {
		return err
	}
	if flags&FlagClaim != 0 {
		if err := findable(r.Context); err != nil {
			return err
		}
	}
	*x = matching.Receive{Context: r.Context, Match: matching.Match{Tagged: tagged, Tag: r.Tag, Ignore: r.Ignore,
		AnySource: true}, Buf: r.Buf, Buffers: r.Pieces}
	x.Claim, x.Multi, x.MinFree = flags&FlagClaim != 0, flags&FlagMultiRecv != 0, int(in.minMultiRecv.Load())
	x.Silent = in.selective && flags&FlagCompletion == 0
	switch {
	case flags&FlagPeek != 0:
	case len(r.Pieces) > MaxPieces:
		return errno.Refuse(ErrTooMany, "xdpfab: a receive of %d buffers: want at most %d", len(r.Pieces), MaxPieces)
	case len(r.Pieces) > 0 && len(r.Buf) > 0:
		return errno.Refuse(ErrLength,
			"xdpfab: a receive with pieces and with one buffer of %d bytes: want one of the two",
			len(r.Buf))
	}
	// a connected endpoint has one source
	if flags&FlagDirected != 0 && r.Source != NoAddress && (in.ep == nil || in.ep.conn == nil) {
		return in.direct(&x.Match, r.Source)
	}
	return nil
}

// direct makes a receive one of messages from an address alone.
func (in *receiveQueue) direct(m *matching.Match, source Address) error {
	var av *AddressVector
	if in.ep != nil {
		av = in.ep.sources()
	}
	if av == nil {
		return fmt.Errorf("xdpfab: %s cannot tell its sources: %w is bound", in.what, ErrNoAV)
	}
	if err := av.reach(source); err != nil { // may wait, if the vector is shared
		return err
	}
	entry, err := av.lookup(source)
	m.AnySource, m.From = false, entry.addr
	m.From.Lane = 0
	return err
}

// posted returns the error of a post in the terms of this package, after it has made
// progress if the caller has to try again.
func (in *receiveQueue) posted(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, matching.ErrFull):
		in.dom.Progress()
		return ErrAgain
	case errors.Is(err, matching.ErrNotClaimed):
		err = ErrNotClaimed
	case errors.Is(err, matching.ErrClosed):
		return in.dom.errClosed(in.what, anew)
	case errors.Is(err, matching.ErrMulti):
		err = ErrMultiRecv
	}
	return fmt.Errorf("xdpfab: %s: %w", in.what, err)
}

// ErrMultiRecv is about a receive that cannot be one of many messages.
var ErrMultiRecv = reason(syscall.EINVAL,
	"a receive with FlagMultiRecv has one buffer, of at least EndpointAttr.MinMultiRecv bytes, and no FlagClaim")

// peek looks for a message that has been kept, and writes a completion that says what was
// found.
func (in *receiveQueue) peek(x *matching.Receive, flags OpFlags) error {
	in.dom.node.Dev.CatchUp(in.dom.node.Steppers[0])
	if !in.Take() {
		return in.posted(matching.ErrFull)
	}
	found := matching.Look
	switch {
	case flags&FlagClaim != 0:
		found = matching.Claim
	case flags&FlagDiscard != 0:
		found = matching.Discard
	}
	d, ok := in.queue.Peek(&x.Match, found, x.Context)
	in.found(&d, ok)
	return nil
}

// dropClaimed drops the message that is claimed for a context, and writes its completion.
func (in *receiveQueue) dropClaimed(context any) error {
	if !in.Take() {
		return in.posted(matching.ErrFull)
	}
	d, ok := in.queue.Discard(context)
	if !ok {
		in.Return()
		return in.posted(matching.ErrNotClaimed)
	}
	in.found(&d, true)
	return nil
}
