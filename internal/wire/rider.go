// SPDX-License-Identifier: Apache-2.0

package wire

// Rider is an ack of another session between the same two nodes, which a request carries
// where a target has its sack: all requests of that session up to PSN have succeeded, and
// have no results. A request has one if it has [FlagRider], which takes a session with
// [FeatureRiders].
type Rider struct {
	Session uint32 // the receiver's id of the session, in which it is the initiator
	PSN     uint32
}

// Carry puts a rider into the header of a request.
func (h *Header) Carry(r Rider) {
	h.Flags |= FlagRider
	h.Sack = uint64(r.Session) | uint64(r.PSN)<<32
}

// Rider returns the rider of a request with FlagRider.
func (h *Header) Rider() Rider { return Rider{Session: uint32(h.Sack), PSN: uint32(h.Sack >> 32)} }
