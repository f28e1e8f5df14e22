// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xdpfab_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// onLoopback opens a domain of UDP sockets.
func onLoopback(t *testing.T, addr netip.Addr, giveUp time.Duration) (d *xdpfab.Domain) {
	t.Helper()
	err := testnet.OnLoopback(func() (err error) {
		d, err = xdpfab.Open(ctx(t), addr.String(), xdpfab.DomainAttr{Transport: fi.TransportUDP, GiveUp: giveUp})
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
	return d
}

// An entry's address may be a host's name, such as that of a pod, which has another
// address after each restart: the name is resolved anew, by Rebind or by the handle
// itself.
func TestClusterFollowsHost(t *testing.T) {
	const host, pod = "counters-0.counters.shop.svc.cluster.local", "counters-0.counters.shop.svc.cluster.local."
	hosts := testnet.NewHosts(t)
	serve := func() *xdpfab.Domain {
		t.Helper()
		at := testnet.LoopbackAddr()
		d := onLoopback(t, at, 0)
		if _, err := d.Serve("w", 4096); err != nil {
			t.Fatal(err)
		}
		hosts.Set(host, at)
		return d
	}
	first := serve()
	hosts.Set(host, testnet.LoopbackAddr(), netip.MustParseAddr(first.Name(0))) // nobody has the first one
	c := newCluster(t, onLoopback(t, testnet.LoopbackAddr(), 2*time.Second), newNames(t, "pod "+pod+" w\n"))
	strict, err := xdpfab.Word[uint64](ctx(t), c, "w", 0)
	if err != nil {
		t.Fatal(err)
	}
	auto, err := xdpfab.Word[uint64](ctx(t), c, "w", 0, xdpfab.AutoRebind())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := auto.Add(ctx(t), 1); n != 1 || err != nil {
		t.Errorf("before: %d, %v", n, err)
	}
	if err := first.CloseAll(); err != nil {
		t.Fatal(err)
	}
	serve()
	ended(ctx(t), func() error { _, err := auto.Load(ctx(t)); return err })
	if n, err := auto.Add(ctx(t), 5); n != 5 || err != nil {
		t.Errorf("by itself: %d, %v", n, err)
	}
	if err := strict.Rebind(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := strict.Load(ctx(t)); n != 5 || err != nil {
		t.Errorf("by Rebind: %d, %v", n, err)
	}
}
