// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// openIn puts a side's interface to use, with a region "r" and an endpoint if it serves.
func openIn(t *testing.T, s *testnet.Side, attr xdpfab.DomainAttr, serves bool) (d *xdpfab.Domain) {
	t.Helper()
	err := s.Do(func() (err error) {
		d, err = xdpfab.Open(context.Background(), s.IfName, attr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	if !serves {
		return d
	}
	ep, err := d.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.NewRegion("r", 4096)
	if err := errors.Join(err, ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return d
}

// While operations are under way, another router takes over the gateway's address at
// either side: nothing fails, and nothing is lost or done twice.
func TestVethGatewayFailsOver(t *testing.T) {
	testnet.Require(t)
	r := testnet.NewRouted(t, testnet.Options{})
	attr := xdpfab.DomainAttr{UDP: true, GiveUp: time.Minute}
	a := openIn(t, r.A, attr, false)
	openIn(t, r.B, attr, true)
	for _, addr := range []string{r.B.IP4.String(), r.B.IP6.String()} {
		p, err := a.Dial(ctx(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		was, err := w.Load(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		added := uint64(0)
		add := func() {
			t.Helper()
			n, err := w.Add(ctx(t), 1)
			if added++; err != nil || n != was+added {
				t.Fatalf("%s: add %d: %d, %v", addr, added, n-was, err)
			}
		}
		for _, side := range []*testnet.Side{r.A, r.B} {
			add()
			if _, err := r.SwapGateway(side); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				add()
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that comes back with its IP address and another MAC address is found again
// by the peer that was dialled before.
func TestVethServerComesBackElsewhere(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	a := openIn(t, pair.A, xdpfab.DomainAttr{UDP: true}, false)
	server := openIn(t, pair.B, xdpfab.DomainAttr{UDP: true}, true)
	p, err := a.Dial(ctx(t), pair.B.IP4.String())
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 3); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := server.CloseAll(); err != nil {
			t.Fatal(err)
		}
		ip(t, pair.B, fmt.Sprintf("link set veth0 address 02:11:22:33:44:%02x", i))
		server = openIn(t, pair.B, xdpfab.DomainAttr{UDP: true}, true)
		if _, err := w.Add(ctx(t), 1); !errors.Is(err, xdpfab.ErrPeerRestarted) {
			t.Errorf("first use: %v", err)
		}
		if err := w.Rebind(ctx(t)); err != nil {
			t.Fatal(err)
		}
		if n, err := w.Add(ctx(t), 3); n != 3 || err != nil {
			t.Errorf("in the new life: %d, %v", n, err)
		}
	}
}
