// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Fixed numbers of the protocol.
const (
	Version   = 1      // protocol version, high nibble of the first byte
	HeaderLen = 34     // bytes before the payload
	MinFrame  = 46     // shorter frames are zero-padded, so that Ethernet (60 B without FCS) never pads
	MaxFrame  = 0xffff // the most that the 16 bits of a hello can announce; sessions agree on far less
	MinMTU    = 256    // smallest usable interface MTU, bytes
	SureMTU   = 1280   // of every path that IPv6 can take (RFC 8200, section 5); overlays have some more, 1400 to 1450
	EtherType = 0x88B5 // raw encapsulation (IEEE 802 local experimental EtherType 1)
	UDPPort   = 34997  // UDP destination port in both directions: EtherType as a number
	MaxLanes  = 64     // AF_XDP sockets on one RX queue
	MaxOps    = 255    // records in one frame

	// minPayload is the payload length of a frame of MinFrame bytes: the only length at
	// which padding may follow.
	minPayload = MinFrame - HeaderLen
)

// Type describes what a frame is for.
type Type uint8

// The frame types. Those from 10 to 15 are kept for extensions.
const (
	Hello    Type = 1 + iota // initiator asks for a session
	HelloAck                 // target's answer to a hello
	Request                  // operation records
	Response                 // results of one request
	Ack                      // a run of requests executed with success, without results
	Nak                      // a gap: frames are held out of order
	Reset                    // the receiver does not know this session
	Probe                    // asks for an ack; has no payload but zeros (FeatureLongProbes)
	Tickets                  // what is asked, or told, of operations that wait at the target: Ticket
)

var typeNames = [...]string{Hello: "hello", HelloAck: "hello-ack", Request: "request", Response: "response",
	Ack: "ack", Nak: "nak", Reset: "reset", Probe: "probe", Tickets: "tickets"}

// String returns the name of the type.
func (t Type) String() string { return nameOf(typeNames[:], "type", t) }

// Flags of a frame.
const (
	FlagStatus   uint8 = 1 << 0 // the response carries a status list
	FlagDelay    uint8 = 1 << 0 // the ack of the request may be delayed, as more requests follow
	FlagRetx     uint8 = 1 << 1 // a retransmission: no RTT sample
	FlagMessages uint8 = 1 << 3 // the records of the request are those of messages
	FlagBusy     uint8 = 1 << 4 // the next request is here, and waits for room for a message
	FlagRider    uint8 = 1 << 5 // the request carries a Rider in place of a sack
	FlagPadded   uint8 = 1 << 6 // the request is longer than its records: see Pad
	FlagEcho     uint8 = 1 << 7 // the probe wants its number back; the ack, of an empty run, has it as its psn
)

// Header is the fixed part of a frame, without version and checksum, which Put, Seal and
// Parse take care of.
type Header struct {
	Type    Type
	Flags   uint8
	Session uint32 // receiver's session id (SessionID); lane<<26 in a hello
	Epoch   uint32 // incarnation of the pair of endpoints
	PSN     uint32 // frame sequence number: of the request, or of the request answered
	Ack     uint32 // cumulative: see the session package
	// bit i: PSN Ack+2+i is here, early; in a hello-ack see Resume.Early, in a request
	// with FlagRider Rider
	Sack   uint64
	Credit uint16 // frames that the sender of this frame can take
	// records in a request, echoed by its response; with FlagBusy in others, records of
	// request Ack+1 that have run; else 0
	Ops  uint8
	Lane uint8 // the sender's lane
}

// flagsOf has the flags that frames of a type may have.
var flagsOf = [...]uint8{Hello: FlagRetx, HelloAck: FlagRetx,
	Request:  FlagDelay | FlagRetx | FlagMessages | FlagRider | FlagPadded,
	Response: FlagStatus | FlagRetx | FlagBusy,
	Ack:      FlagRetx | FlagBusy | FlagEcho, Nak: FlagRetx | FlagBusy, Reset: FlagRetx, Probe: FlagRetx | FlagEcho,
	Tickets: 0}

// crcOff is where the checksum lies.
const crcOff = 30

// Put writes the header, with a checksum of zero, into the first HeaderLen bytes of b. It
// stores whole words: the checksum reads words soon after, and loads that straddle fresh
// small stores are slow.
func (h *Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(Version<<4|h.Type&15)|uint64(h.Flags)<<8|uint64(h.Session)<<16|uint64(h.Epoch)<<48)
	le.PutUint64(b[8:], uint64(h.Epoch>>16)|uint64(h.PSN)<<16|uint64(h.Ack)<<48)
	le.PutUint64(b[16:], uint64(h.Ack>>16)|h.Sack<<16)
	le.PutUint64(b[24:], h.Sack>>48|uint64(h.Credit)<<16|uint64(h.Ops)<<32|uint64(h.Lane)<<40)
	le.PutUint16(b[32:], 0)
}

// Get reads the fields that Put writes. b has at least HeaderLen bytes.
func (h *Header) Get(b []byte) {
	_ = b[HeaderLen-1]
	le := binary.LittleEndian
	*h = Header{
		Type:    Type(b[0] & 15),
		Flags:   b[1],
		Session: le.Uint32(b[2:]),
		Epoch:   le.Uint32(b[6:]),
		PSN:     le.Uint32(b[10:]),
		Ack:     le.Uint32(b[14:]),
		Sack:    le.Uint64(b[18:]),
		Credit:  le.Uint16(b[26:]),
		Ops:     b[28],
		Lane:    b[29],
	}
}

// check applies the rules of the frame's type to the header and the length of the
// payload.
func (h *Header) check(payload []byte) ([]byte, Reason) {
	switch {
	case h.Type == 0:
		return nil, ReasonBadType
	case h.Type > Tickets:
		return nil, ReasonReservedType
	}
	if h.Flags&^flagsOf[h.Type] != 0 {
		return nil, ReasonBadFlags
	}
	if h.Lane >= MaxLanes {
		return nil, ReasonBadLane
	}
	hasRecords, busy := h.Type == Request || h.Type == Response, h.Flags&FlagBusy != 0
	if hasRecords && h.Ops == 0 || !hasRecords && !busy && h.Ops != 0 {
		return nil, ReasonBadOps
	}
	switch h.Type {
	case Request:
		if h.Flags&FlagPadded != 0 {
			return unpad(payload)
		}
		return payload, ReasonOK
	case Response:
		return payload, ReasonOK
	case Hello, HelloAck:
		if helloSized(payload) {
			return payload, ReasonOK
		}
		return exactly(payload, HelloLen)
	case Reset:
		return exactly(payload, ResetLen)
	case Tickets:
		return checkTickets(payload)
	}
	if h.Flags&FlagEcho != 0 && len(payload) > minPayload { // see FeatureLongProbes
		return payload, checkZero(payload)
	}
	return exactly(payload, 0)
}

// exactly returns the first n bytes of a payload that must have that length, padding
// aside.
func exactly(payload []byte, n int) ([]byte, Reason) {
	if len(payload) < n {
		return nil, ReasonBadPayload
	}
	if r := checkTail(payload, payload[n:]); r != ReasonOK {
		return nil, r
	}
	return payload[:n:n], ReasonOK
}

// checkTail judges the bytes that follow the last useful byte of a payload: none, or the
// zeros of a frame of MinFrame.
func checkTail(payload, tail []byte) Reason {
	return tailReason(len(payload) == minPayload, tail)
}

func tailReason(padded bool, tail []byte) Reason {
	if len(tail) == 0 {
		return ReasonOK
	}
	if !padded {
		return ReasonTrailing
	}
	return checkZero(tail)
}

// checkZero refuses reserved or padding bytes that are not zero.
func checkZero(b []byte) Reason {
	var or byte
	for _, v := range b {
		or |= v
	}
	if or != 0 {
		return ReasonBadPadding
	}
	return ReasonOK
}
