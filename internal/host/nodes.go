// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// NodeInfo is what the sessions with another node have carried, of this process and its
// guests, since the first look at it.
type NodeInfo struct {
	Node          string // address, without endpoints
	Sessions      int
	OpsSent       uint64 // operation records
	OpsExecuted   uint64 // likewise, for the node
	FramesResent  uint64 // requests and answers
	BytesSent     uint64 // of packets, with their headers
	BytesReceived uint64
	InFlight      int           // request frames without an answer, or answers not acknowledged
	RTT           time.Duration // smoothed, of the slowest session; 0 if none measures it
	Silence       time.Duration // since the node last showed that it lives
}

// SessionKind is how many sessions there are of a kind.
type SessionKind struct {
	Role, State string
	Count       int
}

// Nodes sums up sessions by the node at their other end. Sums only grow, as those who
// watch a counter expect: when a session is forgotten, what it had carried at the last
// look stays in the sum of its node. Any goroutine may use it.
type Nodes struct {
	mu   sync.Mutex
	last map[ends]carried      // of the present sessions
	past map[wire.Addr]carried // of forgotten ones
}

// ends identify a session and those before and after it between the same endpoints.
type ends struct {
	peer     wire.Addr
	accepted bool
	origin   uint64
	endpoint uint16
}

type carried struct{ opsSent, opsExecuted, resent, sent, received uint64 }

func (c *carried) add(x carried) {
	c.opsSent += x.opsSent
	c.opsExecuted += x.opsExecuted
	c.resent += x.resent
	c.sent += x.sent
	c.received += x.received
}

// mostPast bounds the nodes without sessions that are remembered.
const mostPast = 1024

// Look sums up all sessions: by node, those that carried most first, and by kind.
func (n *Nodes) Look(h *Host) (nodes []NodeInfo, kinds []SessionKind) { return n.sum(h.n.Sessions()) }

// sum does the work of Look.
func (n *Nodes) sum(sessions []engine.SessionInfo) (nodes []NodeInfo, kinds []SessionKind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, byNode, byKind := map[ends]carried{}, map[wire.Addr]*NodeInfo{}, map[SessionKind]int{}
	for i := range sessions {
		s := &sessions[i]
		at := nodeAt(s.Peer)
		if byNode[at] == nil {
			byNode[at] = &NodeInfo{Node: at.String(), Silence: s.Silence}
		}
		byNode[at].meet(s)
		e := ends{s.Peer, s.Accepted, s.Origin, s.Endpoint}
		c := now[e]
		c.add(carriedBy(s))
		now[e] = c
		byKind[SessionKind{Role: role(s), State: s.State}]++
	}
	n.turn(now, byNode)
	for e, c := range now {
		byNode[nodeAt(e.peer)].count(c)
	}
	for at, x := range byNode {
		x.count(n.past[at])
		nodes = append(nodes, *x)
	}
	slices.SortFunc(nodes, func(a, b NodeInfo) int {
		return cmp.Or(cmp.Compare(b.BytesSent+b.BytesReceived, a.BytesSent+a.BytesReceived),
			cmp.Compare(a.Node, b.Node))
	})
	for k, count := range byKind {
		k.Count = count
		kinds = append(kinds, k)
	}
	return nodes, kinds
}

// turn keeps what sessions had carried that are gone, or have begun anew. n.mu is held.
func (n *Nodes) turn(now map[ends]carried, present map[wire.Addr]*NodeInfo) {
	if n.past == nil {
		n.past = map[wire.Addr]carried{}
	}
	for e, was := range n.last {
		if is, there := now[e]; !there || is.sent < was.sent || is.received < was.received {
			at := nodeAt(e.peer)
			c := n.past[at]
			c.add(was)
			n.past[at] = c
		}
	}
	for at := range n.past {
		if len(n.past) > mostPast && present[at] == nil {
			delete(n.past, at)
		}
	}
	n.last = now
}

// nodeAt is an address without endpoint and lane.
func nodeAt(a wire.Addr) wire.Addr { return wire.Addr{MAC: a.MAC, IP: a.IP} }

func carriedBy(s *engine.SessionInfo) carried {
	c := carried{resent: s.FramesResent + s.AnswersResent, sent: s.BytesSent, received: s.BytesReceived}
	if s.Accepted {
		c.opsExecuted = s.Ops
	} else {
		c.opsSent = s.Ops
	}
	return c
}

// meet counts a session in.
func (n *NodeInfo) meet(s *engine.SessionInfo) {
	n.Sessions++
	n.InFlight += s.InFlight
	n.RTT, n.Silence = max(n.RTT, s.RTT), min(n.Silence, s.Silence)
}

func (n *NodeInfo) count(c carried) {
	n.OpsSent += c.opsSent
	n.OpsExecuted += c.opsExecuted
	n.FramesResent += c.resent
	n.BytesSent += c.sent
	n.BytesReceived += c.received
}

// role says who began a session.
func role(s *engine.SessionInfo) string {
	if s.Accepted {
		return "target"
	}
	return "initiator"
}

// Latencies is session.Latencies.
type Latencies = session.Latencies

// QueueInfo is what the poller of a queue has done.
type QueueInfo struct {
	Queue, Sessions                   int
	PacketsReceived, PacketsSent      uint64
	RequestsExecuted, OpsExecuted     uint64
	OpsSent, FramesResent, HandedOver uint64
	Executions, RoundTrips, RingOps   Latencies
}

// Queues returns the queues that pollers of this process serve, in their order.
func (h *Host) Queues() (all []QueueInfo) {
	for q, st := range h.n.Steppers {
		x := QueueInfo{Queue: q}
		st.Call(func() {
			st.Eng.Publish()
			x.Sessions = st.Eng.Usage().Sessions
			x.Executions, x.RoundTrips, x.RingOps = st.Eng.Latencies()
		})
		c := st.Eng.Counters()
		x.PacketsReceived, x.PacketsSent = c[engine.PacketsReceived], c[engine.PacketsSent]
		x.RequestsExecuted, x.OpsExecuted = c[engine.RequestsExecuted], c[engine.OpsExecuted]
		x.OpsSent, x.FramesResent, x.HandedOver = c[engine.OpsSent], c[engine.FramesResent], c[engine.HandedOver]
		all = append(all, x)
	}
	return all
}

// Alive waits until each poller has given a sign of life, one after the other. Before it
// waits for one, it tells the queue.
func (h *Host) Alive(asks func(queue int)) {
	for q, st := range h.n.Steppers {
		asks(q)
		st.Call(func() {})
	}
}

// LatencyBuckets returns how many times were less than so many seconds, for each end of a
// bucket but the last, which has none.
func LatencyBuckets(l *Latencies) (below map[float64]uint64, all uint64) {
	below = map[float64]uint64{}
	for i, n := range l.Buckets {
		if all += n; i < session.NumLatencies-1 {
			below[float64(session.LatencyEnd(i))/1e9] = all
		}
	}
	return below, all
}
