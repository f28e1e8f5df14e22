// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// TicketKind describes what is asked or told about an operation that waits at the target.
type TicketKind uint8

// The kinds. The initiator sends the first three, the target the others.
const (
	TicketAsk       TicketKind = 1 + iota // has it ended?
	TicketCancel                          // it is to end, one way or the other, if it has not
	TicketTaken                           // its end is known: the target may forget it
	TicketParked                          // it waits
	TicketRan                             // it ran; Value is the value before
	TicketLate                            // it never ran: its limit has passed
	TicketCancelled                       // it never ran: the initiator has cancelled it
	TicketClosed                          // it never ran: the region, or the session, has ended
	TicketFull                            // it never ran: the target has no room for it
	TicketGone                            // the target knows no such operation
	numTicketKinds
)

var ticketKindNames = [...]string{TicketAsk: "ask", TicketCancel: "cancel", TicketTaken: "taken",
	TicketParked: "parked", TicketRan: "ran", TicketLate: "late", TicketCancelled: "cancelled",
	TicketClosed: "closed", TicketFull: "full", TicketGone: "gone"}

// String returns the kind in words.
func (k TicketKind) String() string { return nameOf(ticketKindNames[:], "kind of ticket", k) }

// Asks reports whether the initiator sends tickets of the kind.
func (k TicketKind) Asks() bool { return k >= TicketAsk && k <= TicketTaken }

// Told reports whether the target sends tickets of the kind.
func (k TicketKind) Told() bool { return k >= TicketParked && k < numTicketKinds }

// Ticket names an operation that waits at the target, by the request of its session and
// its number in there, and says what is asked or told about it. Neither number comes
// again in the session. A frame of type Tickets holds one or more of them. They may come
// again, late or never: whoever asks goes on until it is told.
type Ticket struct {
	PSN   uint32
	Kind  TicketKind
	Index uint8
	Value uint64 // of TicketRan: the value before, as many of its lower bytes as the datatype has; else 0
}

// TicketLen is the length of a ticket, bytes.
const TicketLen = 16

// Put encodes the ticket into b, which has TicketLen bytes.
func (t *Ticket) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, t.PSN)
	b[4], b[5], b[6], b[7] = uint8(t.Kind), t.Index, 0, 0
	le.PutUint64(b[8:], t.Value)
}

// TicketAt decodes the ticket in b, which has TicketLen bytes.
func TicketAt(b []byte) Ticket {
	le := binary.LittleEndian
	return Ticket{PSN: le.Uint32(b), Kind: TicketKind(b[4]), Index: b[5], Value: le.Uint64(b[8:])}
}

// checkTickets checks the payload of a frame of tickets.
func checkTickets(p []byte) ([]byte, Reason) {
	if len(p) == 0 || len(p)%TicketLen != 0 {
		return nil, ReasonBadPayload
	}
	for b := p; len(b) > 0; b = b[TicketLen:] {
		if t := TicketAt(b); !t.Kind.Asks() && !t.Kind.Told() || b[6]|b[7] != 0 || t.Value != 0 && t.Kind != TicketRan {
			return nil, ReasonBadPayload
		}
	}
	return p, ReasonOK
}
