// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The sums of a node only grow, whatever becomes of its sessions, and are those of all
// its sessions.
func TestNodesOnlyGrow(t *testing.T) {
	session := func(last byte, origin uint64, ops, sent uint64) engine.SessionInfo {
		return engine.SessionInfo{Accepted: true, Origin: origin, State: "open", Silence: time.Duration(origin),
			Peer:    wire.Addr{IP: netip.AddrFrom4([4]byte{10, 0, 0, last})},
			Traffic: engine.Traffic{Ops: ops, BytesSent: sent, BytesReceived: sent}}
	}
	var n Nodes
	for i, step := range []struct {
		sessions []engine.SessionInfo
		ops      uint64 // of node 10.0.0.1
		listed   int
	}{
		{[]engine.SessionInfo{session(1, 1, 10, 100), session(1, 2, 5, 50), session(2, 1, 7, 70)}, 15, 2},
		{[]engine.SessionInfo{session(1, 1, 12, 120), session(2, 1, 7, 70)}, 17, 2},   // one is forgotten
		{[]engine.SessionInfo{session(1, 1, 12, 120), session(1, 2, 1, 10)}, 18, 1},   // and begins anew
		{[]engine.SessionInfo{session(1, 1, 13, 130), session(1, 2, 0, 1)}, 19, 1},    // and again, unseen
		{[]engine.SessionInfo{session(1, 1, 1, 10), session(1, 1, 14, 140)}, 21, 1},   // two of the same ends; one was replaced
		{[]engine.SessionInfo{session(1, 1, 15, 150), session(2, 9, 1, 1000)}, 21, 2}, // the replaced one is in the other's past
	} {
		nodes, kinds := n.sum(step.sessions)
		if len(nodes) != step.listed || len(kinds) != 1 || kinds[0] != (SessionKind{"target", "open", len(step.sessions)}) {
			t.Errorf("step %d: %d nodes, kinds %v", i, len(nodes), kinds)
		}
		var got uint64
		for _, x := range nodes {
			if x.Node == "10.0.0.1" {
				got = x.OpsExecuted
			}
		}
		if got != step.ops {
			t.Errorf("step %d: %d operations, want %d", i, got, step.ops)
		}
	}
	if nodes, _ := n.sum([]engine.SessionInfo{session(2, 9, 2, 2000)}); nodes[0].OpsExecuted != 7+2 {
		t.Errorf("a node whose sessions went and came: %d operations, want 9", nodes[0].OpsExecuted)
	}
}
