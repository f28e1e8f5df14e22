// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
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
	case m == nil:
		return fmt.Errorf("xdpfab: the message is nil: want a Message: %w", ErrLength)
	case ep.phase.Load() == made: // Bind may be at work on what is read below
		return ep.unready()
	case ep.cq == nil && ep.cntr[sends] == nil && !ep.attr.dials:
		return fmt.Errorf("xdpfab: endpoint %d can send no messages, as nothing would tell of a failure: bind a "+
			"completion queue, or a counter with BindTransmit: %w",
			ep.number, ErrNoCQ)
	}
	x := Msg{Buf: m.Buf, Dest: m.Dest, Key: m.Tag,
		Datatype: atomic.Uint8, Op: atomic.Write, Context: m.Context, Data: m.Data,
		Trigger: m.Trigger, work: m.work}
	if len(m.Pieces) > 0 {
		x.Pieces = piecesOf(verb, m.Pieces)
	}
	return ep.post(verb, &x, flags, cookie)
}
