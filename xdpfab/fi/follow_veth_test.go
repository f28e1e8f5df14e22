// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// openOn opens a domain on a side until the test ends.
func openOn(t *testing.T, side *testnet.Side, attr fi.DomainAttr) (d *xdpfab.Domain) {
	t.Helper()
	err := side.Do(func() (err error) {
		d, err = xdpfab.Open(context.Background(), side.IfName, attr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.CloseAll() })
	return d
}

// openWhole is openOn for a domain that closes without an error.
func openWhole(t *testing.T, side *testnet.Side, attr fi.DomainAttr) *xdpfab.Domain {
	t.Helper()
	d := openOn(t, side, attr)
	t.Cleanup(func() {
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// serveOn opens a domain on a side that serves a region "r".
func serveOn(t *testing.T, side *testnet.Side) *xdpfab.Domain {
	t.Helper()
	d := openOn(t, side, fi.DomainAttr{})
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err == nil {
		_, err = d.NewRegion("r", 4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A gateway that fails over, on the way there or on the way back, is nothing that an
// operation notices: the routers' addresses are found out before anybody gives up.
func TestVethGatewayFailsOver(t *testing.T) {
	r := testnet.NewRouted(t, testnet.Options{})
	serveOn(t, r.B)
	client := openOn(t, r.A, fi.DomainAttr{GiveUp: time.Minute})
	for i, addr := range []string{r.B.IP4.String(), r.B.IP6.String()} {
		p, err := client.Dial(ctx(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](ctx(t), p, "r", uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		done := uint64(0)
		add := func(n int) {
			t.Helper()
			for range n {
				done++
				if sum, err := w.Add(context.Background(), 1); err != nil || sum != done {
					t.Fatalf("%s: Add: %d, %v; want %d", addr, sum, err, done)
				}
			}
		}
		add(100)
		for name, side := range map[string]*testnet.Side{"the client's": r.A, "the server's": r.B} {
			if _, err := r.SwapGateway(side); err != nil {
				t.Fatal(err)
			}
			add(100)
			t.Log(addr, name, "gateway")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that comes back on the same IP address with another MAC address is reached
// by the peer that was dialled before.
func TestVethPeerComesBackElsewhere(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	client := openOn(t, pair.A, fi.DomainAttr{GiveUp: time.Second})
	server := serveOn(t, pair.B)
	// The give-up time is short, so that an attempt to reach the former address does not
	// last: a busy machine may keep a live peer from answering for as long.
	insist := func(what string, try func() error) {
		t.Helper()
		for end := time.Now().Add(testnet.Patience); ; {
			err := try()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	var p *xdpfab.Peer
	insist("dial", func() (err error) { p, err = client.Dial(ctx(t), pair.B.IP4.String()); return err })
	insist("the first address", func() error { return addOver(p) })
	for round := range 3 {
		if err := server.CloseAll(); err != nil {
			t.Fatal(err)
		}
		testnet.IP(t, pair.B, fmt.Sprintf("link set veth0 address 02:00:00:00:07:%02x", round))
		server = serveOn(t, pair.B)
		insist(fmt.Sprintf("round %d", round), func() error { return addOver(p) })
	}
}

// addOver looks the region up and runs one operation.
func addOver(p *xdpfab.Peer) error {
	w, err := xdpfab.Word[uint64](context.Background(), p, "r", 0)
	if err != nil {
		return err
	}
	_, err = w.Add(context.Background(), 1)
	return err
}
