// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Mailbox is an endpoint that receives messages, by calls that wait and without a
// completion queue. Peers dial it by its number, and send by [Peer.Send]. If no call
// waits for a message, the mailbox keeps it, within MailboxAttr.Buffered; if there is no
// room, the sender waits. Any number of goroutines may receive, and each message is
// received once. Messages of one sender that are received by the same kind of call come
// in the order in which they were sent.
type Mailbox struct{ box *calls.Box }

// MailboxAttr are the attributes of a mailbox. The zero value of a field means its
// default.
type MailboxAttr struct {
	// Number is the endpoint number by which peers dial the mailbox, 0 to 65535. It is an
	// int since AnyNumber, -1, picks a free one; see EndpointAttr.Number. 0 is taken
	// where Serve or a daemon serves regions.
	Number int
	// Receives is how many calls can wait for messages at the same time, and how many
	// messages can be kept; 1024. Further calls wait until one of these has returned,
	// even if a message that only they would take is here.
	Receives int
	// Buffered is the number of bytes of memory for messages that no call waits for; 4
	// MiB. A message of at most 64 bytes takes none of it. Less than 0 keeps no longer
	// ones: their senders wait until somebody receives.
	Buffered int

	TrafficClass fi.TrafficClass // as EndpointAttr.TrafficClass
	AuthKey      fi.AuthKey      // as EndpointAttr.AuthKey
}

// Sender is the address of the endpoint that a message or a request came from. Values can
// be compared with ==.
type Sender struct{ addr wire.Addr }

// String returns the address in the form that Dial takes. It leads back to a [Mailbox] if
// the sender has dialled by [Mailbox.Dial].
func (s Sender) String() string { return s.addr.String() }

// Received is a message that was received.
type Received struct {
	// the message, or the beginning of it, in the buffer of the call; of a tagged atomic,
	// the elements that it was combined with
	Bytes   []byte
	Length  int  // bytes of the whole message
	Atomic  bool // the message is a tagged atomic; see fi.FlagTagged
	From    Sender
	Tagged  bool
	Tag     uint64 // of a tagged message
	HasData bool
	Data    uint64 // that came with the message: fi.FlagRemoteCQData, fi.Message.Data
}

// NewMailbox makes a mailbox, to which peers can send from now on. Close ends it.
func (d *Domain) NewMailbox(attr MailboxAttr) (*Mailbox, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	box, err := calls.Of(d.Domain).OpenBox(calls.BoxAttr{Number: attr.Number, Receives: attr.Receives,
		Buffered: attr.Buffered, TrafficClass: uint16(attr.TrafficClass), AuthKey: attr.AuthKey})
	if err != nil {
		return nil, err
	}
	return &Mailbox{box}, nil
}

// Number returns the mailbox's endpoint number.
func (b *Mailbox) Number() uint16 {
	if b.there() != nil {
		return 0
	}
	return b.box.Number()
}

// Name returns the address at which peers dial the mailbox: a MAC address, or with
// TransportUDP an IP address, and the number.
func (b *Mailbox) Name() string {
	if b.there() != nil {
		return ""
	}
	return b.box.Name()
}

// Dial is like Domain.Dial, but the messages of the peer come from this mailbox:
// receivers find its address in Received.From, and can answer to it.
func (b *Mailbox) Dial(ctx context.Context, addr string) (*Peer, error) {
	if err := b.there(); err != nil {
		return nil, err
	}
	return dialled(b.box.Dial(ctx, addr))
}

// Close ends the mailbox. Calls that wait return with ErrClosed, messages that it kept
// are dropped, and the peers that were dialled from it are closed. Closing twice is no
// error.
func (b *Mailbox) Close() error {
	if err := b.there(); err != nil {
		return err
	}
	return b.box.Close()
}

// Receive waits for a message without a tag, and puts it into buf. When the context ends,
// the error wraps its cause and no message has been taken, unless one was going into buf
// at that moment: then Receive continues until that message is complete, or has stopped
// for the domain's GiveUp time, so that no message gets lost.
//
// A message longer than buf is received with an error that wraps ErrTruncated: Bytes has
// its beginning, Length tells how long it was, and the rest of it is gone. An empty
// message needs no buffer.
//
// With manual progress the call makes progress.
func (b *Mailbox) Receive(ctx context.Context, buf []byte) (Received, error) {
	return b.receive(ctx, matching.Match{AnySource: true}, buf)
}

// ReceiveTagged is like Receive, for a message with a tag. The message's tag must equal
// tag in all bits that are not set in ignore.
func (b *Mailbox) ReceiveTagged(ctx context.Context, tag, ignore uint64, buf []byte) (Received, error) {
	return b.receive(ctx, matching.Match{AnySource: true, Tagged: true, Tag: tag, Ignore: ignore}, buf)
}

// All returns an iterator over the messages without a tag, which come one after the other
// in the same buffer. After a message that was truncated the loop continues; any other
// error is the last.
func (b *Mailbox) All(ctx context.Context, buf []byte) iter.Seq2[Received, error] {
	return func(yield func(Received, error) bool) {
		for {
			m, err := b.Receive(ctx, buf)
			if !yield(m, err) || err != nil && !errors.Is(err, ErrTruncated) {
				return
			}
		}
	}
}

// receive receives one message.
func (b *Mailbox) receive(ctx context.Context, m matching.Match, buf []byte) (Received, error) {
	if err := b.there(); err != nil {
		return Received{}, err
	}
	d, err := b.box.Receive(ctx, m, buf)
	if err != nil && d.Reason == matching.Received { // there is no message
		return Received{}, err
	}
	return received(&d, buf), err
}

// received returns a message in the form for callers.
func received(d *matching.Done, buf []byte) Received {
	if buf = buf[:d.Received]; d.Atomic {
		buf = d.Buf
	}
	return Received{Bytes: buf, Atomic: d.Atomic, Length: int(min(d.Length, math.MaxInt)), From: Sender{d.From},
		Tagged: d.Tagged, Tag: d.Tag, HasData: d.HasData, Data: d.Data}
}
