// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/host"
)

// MostPeers is the most peers in one answer.
const MostPeers = 1000

// AskPeers are the arguments of the verbs "peers", which returns Peers, and "peer-nodes",
// which returns PeerNodes.
type AskPeers struct {
	Sort  string `json:"sort,omitempty"` // one of PeerOrders; empty: the first of them
	Skip  int    `json:"skip,omitempty"` // peers of that order to leave out
	Limit int    `json:"limit"`          // 1..MostPeers
}

// Peers are sessions with other nodes: some of all, in the order asked for.
type Peers struct {
	Total int             `json:"total"`
	Peers []host.PeerInfo `json:"peers"`
}

// PeerNodes are other nodes with which there are sessions: some of all, in the order
// asked for.
type PeerNodes struct {
	Total int        `json:"total"`
	Peers []PeerNode `json:"peers"`
}

// PeerNode is what all sessions with another node have carried, and how they stand.
type PeerNode struct {
	Peer            string        `json:"peer"`     // address
	Role            string        `json:"role"`     // of this node: "initiator", "target" or "both"
	Open            int           `json:"open"`     // sessions that are there now
	Resident        int           `json:"resident"` // of these, which the XDP program executes
	Sessions        uint64        `json:"sessions"` // with those before them
	Ops             uint64        `json:"ops"`      // sent, or executed
	Frames          uint64        `json:"frames"`   // of these
	FramesResent    uint64        `json:"frames_resent"`
	AnswersResent   uint64        `json:"answers_resent"`
	PacketsSent     uint64        `json:"packets_sent"`
	PacketsReceived uint64        `json:"packets_received"`
	BytesSent       uint64        `json:"bytes_sent"` // of packets, with their headers
	BytesReceived   uint64        `json:"bytes_received"`
	InFlight        int           `json:"in_flight"`  // frames without an answer, or answers not acknowledged
	RTT             time.Duration `json:"rtt_ns"`     // smoothed, the longest; 0 of a node that only asks
	Silence         time.Duration `json:"silence_ns"` // of the session that was heard last
}

// both is the role of a node that has begun sessions, and with which others have.
const both = "both"

// nodeOf is the node of a session: its address is that of the peer without the endpoint.
func nodeOf(p *host.PeerInfo) PeerNode {
	address, _, _ := strings.Cut(p.Peer, "/")
	n := PeerNode{Peer: address, Role: p.Role, Open: 1, Sessions: p.Sessions, Ops: p.Ops, Frames: p.Frames,
		FramesResent: p.FramesResent, AnswersResent: p.AnswersResent, PacketsSent: p.PacketsSent,
		PacketsReceived: p.PacketsReceived, BytesSent: p.BytesSent, BytesReceived: p.BytesReceived,
		InFlight: p.InFlight, RTT: p.RTT, Silence: p.Silence}
	if p.Resident {
		n.Resident = 1
	}
	return n
}

// add adds another session's counts, or those of several.
func (n *PeerNode) add(x *PeerNode) {
	if n.Role != x.Role {
		n.Role = both
	}
	n.Open, n.Resident, n.Sessions = n.Open+x.Open, n.Resident+x.Resident, n.Sessions+x.Sessions
	n.Ops, n.Frames = n.Ops+x.Ops, n.Frames+x.Frames
	n.FramesResent, n.AnswersResent = n.FramesResent+x.FramesResent, n.AnswersResent+x.AnswersResent
	n.PacketsSent, n.PacketsReceived = n.PacketsSent+x.PacketsSent, n.PacketsReceived+x.PacketsReceived
	n.BytesSent, n.BytesReceived = n.BytesSent+x.BytesSent, n.BytesReceived+x.BytesReceived
	n.InFlight, n.RTT, n.Silence = n.InFlight+x.InFlight, max(n.RTT, x.RTT), min(n.Silence, x.Silence)
}

// byNode sums sessions up by node, in the order in which the nodes come first.
func byNode(sessions []host.PeerInfo) []PeerNode {
	nodes, at := []PeerNode{}, map[string]int{} // never null in JSON
	for i := range sessions {
		n := nodeOf(&sessions[i])
		if known, is := at[n.Peer]; is {
			nodes[known].add(&n)
			continue
		}
		at[n.Peer] = len(nodes)
		nodes = append(nodes, n)
	}
	return nodes
}

type peerOrder struct {
	name string
	by   func(p *PeerNode) uint64
}

// peerOrders are what peers can be sorted by: the first by address, the others by what is
// greatest.
var peerOrders = []peerOrder{
	{"peer", func(*PeerNode) uint64 { return 0 }},
	{"ops", func(p *PeerNode) uint64 { return p.Ops }},
	{"bytes", func(p *PeerNode) uint64 { return p.BytesSent + p.BytesReceived }},
	{"resent", func(p *PeerNode) uint64 { return p.FramesResent + p.AnswersResent }},
	{"rtt", func(p *PeerNode) uint64 { return uint64(p.RTT) }},
	{"silence", func(p *PeerNode) uint64 { return uint64(max(p.Silence, 0)) }},
}

// PeerOrders are what peers can be sorted by.
func PeerOrders() (names []string) {
	for _, o := range peerOrders {
		names = append(names, o.name)
	}
	return names
}

// PeersVerbs are the verbs "peers" and "peer-nodes". look returns all sessions, in the
// order of addresses.
func PeersVerbs(look func() []host.PeerInfo) []Verb {
	return []Verb{
		{"peers", func(_ context.Context, arguments json.RawMessage) (any, error) {
			total, page, err := paged(arguments, look, func(p *host.PeerInfo) PeerNode { return nodeOf(p) })
			return Peers{Total: total, Peers: page}, err
		}},
		{"peer-nodes", func(_ context.Context, arguments json.RawMessage) (any, error) {
			nodes := func() []PeerNode { return byNode(look()) }
			total, page, err := paged(arguments, nodes, func(p *PeerNode) PeerNode { return *p })
			return PeerNodes{Total: total, Peers: page}, err
		}},
	}
}

// paged returns the part that is asked for of what look returns, and how many there are.
func paged[T any](arguments json.RawMessage, look func() []T, node func(*T) PeerNode) (total int, page []T, err error) {
	var a AskPeers
	if err := json.Unmarshal(arguments, &a); err != nil {
		return 0, nil, fmt.Errorf("arguments: %w", err)
	}
	order := cmp.Or(a.Sort, peerOrders[0].name)
	i := slices.IndexFunc(peerOrders, func(o peerOrder) bool { return o.name == order })
	switch {
	case i < 0:
		return 0, nil, fmt.Errorf("sort %q: want one of %s", a.Sort, strings.Join(PeerOrders(), ", "))
	case a.Skip < 0 || a.Limit < 1 || a.Limit > MostPeers:
		return 0, nil, fmt.Errorf("skip %d, limit %d: want 0 or more, and 1 to %d", a.Skip, a.Limit, MostPeers)
	}
	all := look()
	by := func(x *T) uint64 {
		n := node(x)
		return peerOrders[i].by(&n)
	}
	slices.SortStableFunc(all, func(x, y T) int { return cmp.Compare(by(&y), by(&x)) })
	from := min(a.Skip, len(all))
	return len(all), all[from:min(from+a.Limit, len(all))], nil
}
