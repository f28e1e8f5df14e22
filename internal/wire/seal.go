// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Sealer is the step that every frame of a session passes last on its way out, and first
// on its way in: it makes sure that the receiver believes nothing but what the sender
// wrote. A nil Sealer is the checksum, which keeps damage out. It is computed without an
// indirect call, as nearly all frames are.
//
// A sealer may encrypt whatever follows the header, and authenticate the whole frame. The
// header stays as it is, but for the four bytes of the checksum, which are the sealer's:
// XDP programs and engines find the session of a sealed frame by its header.
//
// Frames arrive in any order, repeatedly, or never. Repetition does not concern the
// sealer: the session tells by the psn. A frame that is sent again is sealed again, with
// other acks in its header, so a sealer that must not use a nonce twice has to count what
// it seals. Hellos and their answers, and frames that name no session which their
// receiver knows, have the checksum.
type Sealer interface {
	// Seal seals the frame of n bytes that begins b, in place, and returns the length of
	// the sealed frame, for which b has room. n is at least MinFrame.
	Seal(b []byte, n int) int
	// Open checks a sealed frame, its header included, and returns the frame, which it
	// may make in place. The reason is not ReasonOK if the peer has not sealed it so.
	Open(sealed []byte) (frame []byte, reason Reason)
}

// SealBy finishes the frame of n bytes that starts b: it pads it with zeros to MinFrame,
// seals it, and returns the final length. b must have room for that, and n must be at
// least HeaderLen.
func SealBy(s Sealer, b []byte, n int) int {
	if n < MinFrame {
		clear(b[n:MinFrame])
		n = MinFrame
	}
	if s != nil {
		return s.Seal(b, n)
	}
	binary.LittleEndian.PutUint32(b[crcOff:], Checksum(b[:n]))
	return n
}

// TypeOf returns the type of a frame, which has a header.
func TypeOf(frame []byte) Type { return Type(frame[0] & 15) }

// Seal is SealBy the checksum.
func Seal(b []byte, n int) int { return SealBy(nil, b, n) }

// Peek returns the type and the session that a sealed frame, as Decap returned it, claims
// to have. They are not to be believed before Open: they serve to find the sealer.
func Peek(frame []byte) (t Type, id SessionID, reason Reason) {
	switch {
	case len(frame) < MinFrame:
		return 0, 0, ReasonTruncated
	case len(frame) > MaxFrame:
		return 0, 0, ReasonOversized
	case frame[0]>>4 != Version:
		return 0, 0, ReasonBadVersion
	}
	return TypeOf(frame), SessionID(binary.LittleEndian.Uint32(frame[2:])), ReasonOK
}

// Open opens a frame that Peek has accepted, and splits it: it sets h and returns the
// payload. The payload is a view into frame; for a request or a response it may end in
// the zero padding of a short frame, but that which follows the records of a padded
// request is left out, for the other types it has exactly the length that the type
// prescribes. A hello or hello-ack may have a remainder.
//
// The seal is verified before anything but the version: damage on the way is then counted
// as such, and every later reason is a fault of the peer's software.
func (h *Header) Open(s Sealer, frame []byte) (payload []byte, reason Reason) {
	if s != nil {
		if frame, reason = s.Open(frame); reason != ReasonOK {
			return nil, reason
		}
		if len(frame) < MinFrame {
			return nil, ReasonTruncated
		}
	} else if Checksum(frame) != binary.LittleEndian.Uint32(frame[crcOff:]) {
		return nil, ReasonBadCRC
	}
	h.Get(frame)
	return h.check(frame[HeaderLen:])
}

// Parse is Peek and Open by the checksum.
func Parse(frame []byte) (h Header, payload []byte, reason Reason) {
	if _, _, reason = Peek(frame); reason == ReasonOK {
		payload, reason = h.Open(nil, frame)
	}
	return h, payload, reason
}
