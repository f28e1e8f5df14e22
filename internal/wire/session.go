// SPDX-License-Identifier: Apache-2.0

package wire

// SessionID names a session at its receiver. The XDP program steers by lane and queue,
// the engine finds the session by index without a search, and because of the tag the
// id of a former session does not match.
//
//	bits 31..26 lane | 25..20 queue | 19..6 index | 5..0 random tag
type SessionID uint32

// Limits of the fields of a SessionID.
const (
	MaxQueues   = 64
	MaxSessions = 1 << 14 // sessions of one lane of one queue
	MaxTags     = 64
)

// NewSessionID joins the fields; each is cut to its width.
func NewSessionID(lane, queue, index, tag uint32) SessionID {
	return SessionID(lane<<26 | queue&(MaxQueues-1)<<20 | index&(MaxSessions-1)<<6 | tag&(MaxTags-1))
}

// HelloSession is the session field of a hello to the given lane: no session exists yet.
func HelloSession(lane uint8) uint32 { return uint32(lane) << 26 }

// Lane returns which socket of the queue owns the session.
func (id SessionID) Lane() uint8 { return uint8(id >> 26) }

// Queue returns the RX queue that the session lives on.
func (id SessionID) Queue() uint8 { return uint8(id>>20) & (MaxQueues - 1) }

// Index returns the session's place in its engine's table.
func (id SessionID) Index() uint16 { return uint16(id>>6) & (MaxSessions - 1) }

// Tag returns the random bits.
func (id SessionID) Tag() uint8 { return uint8(id) & (MaxTags - 1) }
