// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/host"
)

// Peers come in pages of the order that is asked for, and never more at a time than the
// limit.
func TestAskPeers(t *testing.T) {
	t.Parallel()
	const count = 2500
	look := func() (all []host.PeerInfo) {
		for i := range count {
			all = append(all, host.PeerInfo{Peer: fmt.Sprint(i), Ops: uint64(i % 7), FramesResent: uint64(i)})
		}
		return all
	}
	c := dial(t, start(t, steady, PeersVerbs(look)...))
	page := func(a AskPeers) (p Peers) {
		t.Helper()
		if err := c.Call(ask(t), "peers", a, &p); err != nil {
			t.Fatal(err)
		}
		if p.Total != count {
			t.Errorf("%+v: %d in total, want %d", a, p.Total, count)
		}
		return p
	}
	var got int
	for {
		p := page(AskPeers{Skip: got, Limit: MostPeers})
		for _, x := range p.Peers {
			if x.Peer != fmt.Sprint(got) {
				t.Fatalf("peer %s at place %d", x.Peer, got)
			}
			got++
		}
		if len(p.Peers) < MostPeers {
			break
		}
	}
	if got != count {
		t.Errorf("%d peers in all pages, want %d", got, count)
	}
	if p := page(AskPeers{Sort: "resent", Limit: 2}); len(p.Peers) != 2 || p.Peers[0].FramesResent != count-1 || p.Peers[1].FramesResent != count-2 {
		t.Errorf("those that resend most: %+v", p.Peers)
	}
	if p := page(AskPeers{Sort: "ops", Limit: 2, Skip: 1}); len(p.Peers) != 2 || p.Peers[0].Peer != "13" || p.Peers[1].Peer != "20" {
		t.Errorf("those with most operations, of which equals stay in order: %+v", p.Peers)
	}
	if p := page(AskPeers{Skip: 1 << 40, Limit: 1}); len(p.Peers) != 0 {
		t.Errorf("behind the last: %+v", p.Peers)
	}
	for want, a := range map[string]AskPeers{
		"want one of peer, ops, bytes, resent, rtt, silence": {Sort: "size", Limit: 1},
		"limit 0: want 0 or more, and 1 to 1000":             {},
		"limit 1001: want":                                   {Limit: MostPeers + 1},
		"skip -1, limit 1: want":                             {Skip: -1, Limit: 1},
	} {
		var p Peers
		if err := c.Call(ask(t), "peers", a, &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
}

// The sessions with a node are summed up: one row for each node, in the order asked for.
func TestPeerNodes(t *testing.T) {
	t.Parallel()
	look := func() []host.PeerInfo {
		return []host.PeerInfo{
			{Peer: "10.0.0.1", Role: "target", Sessions: 1, Ops: 5, Frames: 1, AnswersResent: 2, BytesSent: 10, InFlight: 1, Silence: 9},
			{Peer: "10.0.0.2", Role: "target", Sessions: 3, Ops: 4},
			{Peer: "10.0.0.1/7", Role: "initiator", Sessions: 2, Ops: 2, Frames: 2, FramesResent: 1, PacketsSent: 3, PacketsReceived: 4,
				BytesReceived: 20, InFlight: 2, RTT: 7, Silence: 8},
			{Peer: "10.0.0.2/1", Role: "target", Sessions: 1, Ops: 4, Resident: true},
			{Peer: "02:00:00:00:00:01/0.1", Role: "initiator", Sessions: 1},
		}
	}
	c := dial(t, start(t, steady, PeersVerbs(look)...))
	one := PeerNode{Peer: "10.0.0.1", Role: "both", Open: 2, Sessions: 3, Ops: 7, Frames: 3, FramesResent: 1, AnswersResent: 2, PacketsSent: 3,
		PacketsReceived: 4, BytesSent: 10, BytesReceived: 20, InFlight: 3, RTT: 7, Silence: 8}
	two := PeerNode{Peer: "10.0.0.2", Role: "target", Open: 2, Resident: 1, Sessions: 4, Ops: 8}
	mac := PeerNode{Peer: "02:00:00:00:00:01", Role: "initiator", Open: 1, Sessions: 1}
	for name, x := range map[string]struct {
		ask  AskPeers
		want []PeerNode
	}{
		"all":       {AskPeers{Limit: 10}, []PeerNode{one, two, mac}},
		"by ops":    {AskPeers{Sort: "ops", Limit: 10}, []PeerNode{two, one, mac}},
		"by resent": {AskPeers{Sort: "resent", Limit: 1}, []PeerNode{one}},
		"a page":    {AskPeers{Skip: 2, Limit: 10}, []PeerNode{mac}},
	} {
		var got PeerNodes
		if err := c.Call(ask(t), "peer-nodes", x.ask, &got); err != nil || got.Total != 3 || !slices.Equal(got.Peers, x.want) {
			t.Errorf("%s: %v, %+v; want %+v", name, err, got, x.want)
		}
	}
}

// A node without sessions has an empty list, which jq can go through, and not null.
func TestNoPeers(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, steady, PeersVerbs(func() []host.PeerInfo { return []host.PeerInfo{} })...))
	for _, verb := range []string{"peers", "peer-nodes"} {
		var got json.RawMessage
		if err := c.Call(ask(t), verb, AskPeers{Limit: 1}, &got); err != nil || string(got) != `{"total":0,"peers":[]}` {
			t.Errorf("%s: %s, %v", verb, got, err)
		}
	}
}
