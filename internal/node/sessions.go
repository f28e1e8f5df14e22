// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/xdpfab/xdpfab/internal/engine"

// placesAtOnce is how many places of its table an engine looks at before it returns to
// packets.
const placesAtOnce = 256

// Sessions describes the sessions of all engines, in no order. They are looked at one
// after the other, so the counts are not of one moment.
func (n *Node) Sessions() (all []engine.SessionInfo) {
	for _, st := range n.Steppers {
		for from, more := 0, true; more; more = from > 0 {
			part, next := all, 0 // as they stay if the engine has ended and calls nothing
			st.Call(func() { part, next = st.Eng.Sessions(part, from, placesAtOnce) })
			all, from = part, next
		}
	}
	return all
}

// PeerStats returns what the sessions with each address have carried, by name.
func (n *Node) PeerStats() map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for _, s := range n.Sessions() {
		peer := s.Peer.String()
		at := all[peer]
		if at == nil {
			at = map[string]uint64{}
			all[peer] = at
		}
		ops, frames := "ops_sent", "frames_sent"
		if s.Accepted {
			ops, frames = "ops_executed", "frames_executed"
		}
		for name, v := range map[string]uint64{
			ops: s.Ops, frames: s.Frames, "sessions": s.Sessions, "in_flight": uint64(s.InFlight),
			"frames_resent": s.FramesResent, "answers_resent": s.AnswersResent,
			"packets_sent": s.PacketsSent, "packets_received": s.PacketsReceived,
			"bytes_sent": s.BytesSent, "bytes_received": s.BytesReceived,
		} {
			at[name] += v
		}
		at["rtt_ns"] = max(at["rtt_ns"], uint64(s.RTT))
	}
	return all
}
