// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// PeerInfo describes a session with another node, of this process or of one of its
// guests, and what it has carried. The counts of a present session include those of the
// sessions before it between the same two endpoints, which Sessions counts.
type PeerInfo struct {
	// address; without the number of the endpoint if that has begun the session
	Peer            string        `json:"peer"`
	Role            string        `json:"role"`     // "initiator", if this node has begun it, or "target"
	Endpoint        uint16        `json:"endpoint"` // of this node
	Session         string        `json:"session"`  // hexadecimal with 0x, 8 digits
	State           string        `json:"state"`
	Resident        bool          `json:"resident,omitempty"` // the XDP program executes it
	Sessions        uint64        `json:"sessions"`
	Ops             uint64        `json:"ops"`            // sent, or executed
	Frames          uint64        `json:"frames"`         // of these
	FramesResent    uint64        `json:"frames_resent"`  // by an initiator
	AnswersResent   uint64        `json:"answers_resent"` // by a target: the first was lost or late
	PacketsSent     uint64        `json:"packets_sent"`
	PacketsReceived uint64        `json:"packets_received"`
	BytesSent       uint64        `json:"bytes_sent"` // of packets, with their headers
	BytesReceived   uint64        `json:"bytes_received"`
	InFlight        int           `json:"in_flight"` // frames without an answer, or answers not acknowledged
	RTT             time.Duration `json:"rtt_ns"`    // smoothed; 0 of a target, which measures none
	Silence         time.Duration `json:"silence_ns"`
}

// Peers returns the sessions with other nodes, in the order of addresses.
func (h *Host) Peers() []PeerInfo {
	sessions := h.n.Sessions()
	slices.SortFunc(sessions, func(a, b engine.SessionInfo) int {
		return cmp.Or(a.Peer.IP.Compare(b.Peer.IP), slices.Compare(a.Peer.MAC[:], b.Peer.MAC[:]),
			cmp.Compare(a.Peer.Lane, b.Peer.Lane), cmp.Compare(a.Peer.Endpoint, b.Peer.Endpoint),
			cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.ID, b.ID))
	})
	all := make([]PeerInfo, len(sessions))
	for i := range sessions {
		all[i] = describe(&sessions[i])
	}
	return all
}

func describe(s *engine.SessionInfo) PeerInfo {
	return PeerInfo{
		Peer: s.Peer.String(), Role: role(s), Endpoint: s.Endpoint, Session: fmt.Sprintf("0x%08x", uint32(s.ID)),
		State: s.State, Resident: s.Resident, InFlight: s.InFlight, RTT: s.RTT, Silence: s.Silence,
		Sessions: s.Sessions, Ops: s.Ops, Frames: s.Frames, FramesResent: s.FramesResent,
		AnswersResent: s.AnswersResent,
		PacketsSent:   s.PacketsSent, PacketsReceived: s.PacketsReceived, BytesSent: s.BytesSent,
		BytesReceived: s.BytesReceived,
	}
}
