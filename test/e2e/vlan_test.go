// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// more adds 5 to the first word of a region, and expects what was there before.
func more(t *testing.T, from *testnet.Side, peer, region string, was int, args ...string) {
	t.Helper()
	args = append([]string{"atomic", "sum", "uint64", "5", "-q", "-i", from.IfName, "--region", region, "--peer", peer}, args...)
	p := xdpfab(t, from, args)
	if p.wants(0); strings.TrimSpace(p.out.String()) != fmt.Sprint(was) {
		t.Errorf("%s of %s: found %q, want %d", region, peer, p.out.String(), was)
	}
}

// brief is how long an answer is waited for that is not expected, or asked for again.
const brief = "3s"

// silent expects that a peer does not answer.
func silent(t *testing.T, from *testnet.Side, peer string) {
	t.Helper()
	if p := xdpfab(t, from, []string{"ping", peer, "-i", from.IfName, "--count", "1", "--timeout", brief}); p.code() == 0 {
		t.Errorf("%s answers: %s", peer, p.out.String())
	}
}

// Daemons that serve one VLAN reach each other by frames with its tag, over a takeover,
// too; and what others send goes to the kernel.
func TestVLAN(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewVeth(t, testnet.Options{})
	flags := []string{"--vlan", "100", "--region", "r=4KiB", "--region", "hot=4KiB:resident", "--pin", "none"}
	d := serve(t, net.B, flags...)
	silent(t, net.A, d.addr())
	if d.counters()["xdp_pass_vlan"] == 0 {
		t.Errorf("counters: %v; want untagged frames passed", d.counters())
	}
	host(t, net.A, "--vlan", "100")
	for n, region := range []string{"r", "hot", "r", "hot"} {
		more(t, net.A, d.addr(), region, n/2*5)
	}
	if d.counters()["resident_ops_executed"] == 0 {
		t.Errorf("counters: %v; want operations of the program", d.counters())
	}
	other := launch(t, net.B, d.socket, "--takeover", "--region", "r=4KiB", "--pin", "none")
	if other.code() == 0 || !strings.Contains(other.err.String(), "--vlan is untagged, and that daemon has 100") {
		t.Errorf("a takeover with another policy: %s", other.err.String())
	}
	next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
	next.ready()
	d.wants(0)
	more(t, net.A, next.addr(), "r", 10)
	more(t, net.A, next.addr(), "hot", 10)
	if s, err := next.ask(); err != nil || s.VLAN != "100" {
		t.Errorf("status %+v, %v; want VLAN 100", s, err)
	}
	info := xdpfab(t, net.B, []string{"info", "veth0", "--control", next.socket})
	if info.wants(0); !strings.Contains(info.out.String(), "100: its frames alone are taken") {
		t.Errorf("info: %s", info.out.String())
	}
	if log := next.err.String(); !strings.Contains(log, "NIC hides 802.1Q tags") {
		t.Errorf("a veth may bring tags beside the frames, and the log says nothing: %s", log)
	}
	next.end()
}

// A daemon that takes any tag answers with the one that came. It cannot be replaced by
// one to which a session's frames would not come any more.
func TestVLANAny(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewVeth(t, testnet.Options{})
	flags := []string{"--region", "r=4KiB", "--pin", "none"}
	d := serve(t, net.B, append(flags, "--vlan", "any")...)
	more(t, net.A, d.addr(), "r", 0)
	next := launch(t, net.B, d.socket, append(flags, "--takeover")...) // untagged sessions alone
	next.ready()
	d.wants(0)
	d = launch(t, net.B, d.socket, append(flags, "--vlan", "any", "--takeover")...)
	d.ready()
	next.wants(0)
	host(t, net.A, "--vlan", "7")
	more(t, net.A, d.addr(), "r", 5)
	adder, added := startAdding(t, net.A, d, "-region", "r")
	adder.eventually("adding", func() bool { return added() > 0 })
	other := launch(t, net.B, d.socket, append(flags, "--takeover")...)
	if other.code() == 0 || !strings.Contains(other.err.String(), "has frames of VLAN 7") {
		t.Errorf("a takeover to which a session's frames do not come: %s", other.err.String())
	}
	was := added()
	adder.eventually("going on", func() bool { return added() > was })
	more(t, net.A, d.addr(), "r", 10+int(ended(t, adder)))
	d.end()
}
