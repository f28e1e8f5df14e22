// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Endpoints on a borrowed queue connect, and are connected to.
func TestBorrowedConnections(t *testing.T) {
	g, peer, _ := Borrowing(t, fi.DomainAttr{})
	for name, b := range map[string]*bench{"calls": {T: t, client: g, server: peer}, "is called": {T: t, client: peer, server: g}} {
		s := newSwitchboard(b, fi.PassiveAttr{Number: 9})
		caller, callee := s.connect()
		for _, x := range [][2]*fi.Endpoint{{caller, callee}, {callee, caller}} {
			if peer, err := x[0].PeerName(); peer != x[1].Name() || err != nil {
				t.Errorf("%s: peer %q, %v, want %q", name, peer, err, x[1].Name())
			}
		}
		b.ok(callee.Disconnect())
		s.next(s.near, fi.EventShutdown, caller)
		b.ok(caller.Close())
		b.ok(callee.Close())
		b.ok(s.pep.Close())
	}
}

// The host looks for a peer that does not answer any more, and tells the borrower where
// it is now.
func TestBorrowerFollowsPeer(t *testing.T) {
	g, peer, pair := Borrowing(t, fi.DomainAttr{GiveUp: 500 * time.Millisecond})
	if err := peer.CloseAll(); err != nil {
		t.Fatal(err)
	}
	peer = serveOn(t, pair.B)
	// The give-up time is short, for the peer that is gone. One that lives may be kept
	// from answering for as long.
	var p *xdpfab.Peer
	testnet.Eventually(t, "the peer is dialled", func() (dialled bool) {
		var err error
		p, err = g.Dial(ctx(t), pair.B.IP4.String())
		return err == nil
	})
	testnet.Eventually(t, "the peer is reached", func() bool { return addOver(p) == nil })
	if err := peer.CloseAll(); err != nil {
		t.Fatal(err)
	}
	testnet.IP(t, pair.B, "link set veth0 address 02:00:00:00:07:07")
	serveOn(t, pair.B)
	testnet.Eventually(t, "the peer is reached by its new address", func() bool { return addOver(p) == nil })
}
