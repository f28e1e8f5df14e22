// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"fmt"
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
	c := dial(t, start(t, steady, PeersVerb(look)))
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
