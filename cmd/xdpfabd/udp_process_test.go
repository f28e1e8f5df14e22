// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A daemon on UDP sockets tells what happens to its interface, serves an address that
// comes back, and ends with the interface.
func TestProcessSocketsInterfaceChanges(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, net.B, "addr flush dev veth0", "addr add 10.77.0.2/24 dev veth0")
	p := launch(t, net.B, socketPath(t), nil, "--transport", "udp", "--region", "counters=64KiB")
	p.ready(t)
	add(t, net.A, "10.77.0.2")
	testnet.IP(t, net.B, "link set veth0 down")
	p.said(t, `cause="it was set down"`)
	testnet.IP(t, net.B, "link set veth0 up")
	p.said(t, "interface is up again")
	testnet.IP(t, net.B, "addr del 10.77.0.2/24 dev veth0")
	p.said(t, "from=10.77.0.2")
	p.said(t, `cause="it has none of the addresses that are served"`)
	testnet.IP(t, net.B, "addr add 10.77.0.9/24 dev veth0")
	p.said(t, "10.77.0.9 is not served: UDP sockets serve the addresses that veth0 had when it was opened")
	testnet.IP(t, net.B, "addr add 10.77.0.2/24 dev veth0")
	p.said(t, "to=10.77.0.2")
	add(t, net.A, "10.77.0.2")
	testnet.IP(t, net.B, "link del veth0")
	if code := p.code(t); code != exitFailure || strings.Count(p.out.String(), "interface veth0 is gone") != 1 {
		t.Errorf("exit code %d, %s", code, p.out.String())
	}
}
