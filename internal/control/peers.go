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

	"github.com/xdpfab/xdpfab/internal/host"
)

// MostPeers is the most peers in one answer.
const MostPeers = 1000

// AskPeers are the arguments of the verb "peers", which returns Peers.
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

type peerOrder struct {
	name string
	by   func(p *host.PeerInfo) uint64
}

// peerOrders are what peers can be sorted by: the first by address, the others by what is
// greatest.
var peerOrders = []peerOrder{
	{"peer", func(*host.PeerInfo) uint64 { return 0 }},
	{"ops", func(p *host.PeerInfo) uint64 { return p.Ops }},
	{"bytes", func(p *host.PeerInfo) uint64 { return p.BytesSent + p.BytesReceived }},
	{"resent", func(p *host.PeerInfo) uint64 { return p.FramesResent + p.AnswersResent }},
	{"rtt", func(p *host.PeerInfo) uint64 { return uint64(p.RTT) }},
	{"silence", func(p *host.PeerInfo) uint64 { return uint64(max(p.Silence, 0)) }},
}

// PeerOrders are what peers can be sorted by.
func PeerOrders() (names []string) {
	for _, o := range peerOrders {
		names = append(names, o.name)
	}
	return names
}

// PeersVerb is the verb "peers". look returns all of them, in the order of addresses.
func PeersVerb(look func() []host.PeerInfo) Verb {
	return Verb{"peers", func(_ context.Context, arguments json.RawMessage) (any, error) {
		var a AskPeers
		if err := json.Unmarshal(arguments, &a); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		order := cmp.Or(a.Sort, peerOrders[0].name)
		i := slices.IndexFunc(peerOrders, func(o peerOrder) bool { return o.name == order })
		switch {
		case i < 0:
			return nil, fmt.Errorf("sort %q: want one of %s", a.Sort, strings.Join(PeerOrders(), ", "))
		case a.Skip < 0 || a.Limit < 1 || a.Limit > MostPeers:
			return nil, fmt.Errorf("skip %d, limit %d: want 0 or more, and 1 to %d", a.Skip, a.Limit, MostPeers)
		}
		all, by := look(), peerOrders[i].by
		slices.SortStableFunc(all, func(x, y host.PeerInfo) int { return cmp.Compare(by(&y), by(&x)) })
		from := min(a.Skip, len(all))
		return Peers{Total: len(all), Peers: all[from:min(from+a.Limit, len(all))]}, nil
	}}
}
