// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A daemon with a resident region beside an ordinary one: the bench finds either by name,
// its sums are exact, and stat tells that the program executed them.
func TestResidentRegion(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=64KiB", "--region", "hot=64KiB:resident", "--pin", "none")
	stat := func() control.Status { return answer[control.Status](t, nil, "stat", "--control", d.socket) }
	if r := stat().Regions; len(r) != 2 || r[1].Backing != "resident" {
		t.Errorf("regions %+v", r)
	}
	for _, c := range []struct {
		region string
		least  uint64 // frames that the program executes
	}{{"r", 0}, {"hot", 1}} {
		for _, mode := range []string{"latency", "throughput"} {
			before := stat().Counters["resident_requests_executed"]
			b := answer[benchReport](t, net.A, "bench", d.addr(), "-i", net.A.IfName, "--region", c.region, "--mode", mode, "--op", "add", "--duration", "100ms", "--timeout", silence.String())
			if !b.Verified || b.Ops == 0 {
				t.Errorf("%s of %s: %+v is not verified", mode, c.region, b)
			}
			if n := stat().Counters["resident_requests_executed"] - before; n < c.least || c.least == 0 && n > 0 {
				t.Errorf("%s of %s: the program executed %d frames", mode, c.region, n)
			}
		}
	}
	if text := xdpfab(t, nil, []string{"stat", "--control", d.socket}).out.String(); !strings.Contains(text, "resident_ops_executed") {
		t.Errorf("stat prints %q", text)
	}
	checkResidentPeer(t, net, d)
	if text := xdpfab(t, net.B, []string{"info", net.B.IfName}).out.String(); !strings.Contains(text, "resident regions  ") {
		t.Errorf("info prints %q", text)
	}
	d.end()
}

// checkResidentPeer checks that stat sessions and stat peers count what the XDP program
// executes for a client while that works.
func checkResidentPeer(t *testing.T, net *testnet.Pair, d *node) {
	t.Helper()
	ping := start(t, net.A, xdpfabPath, []string{"ping", d.addr(), "-i", net.A.IfName, "--region", "hot", "-c", "0", "--interval", "1ms"})
	var p control.Peers
	ping.eventually("the daemon counts 100 operations of a resident session", func() bool {
		p = answer[control.Peers](t, nil, "stat", "sessions", "--sort", "ops", "--control", d.socket)
		return len(p.Peers) > 0 && p.Peers[0].Resident && p.Peers[0].Ops >= 100
	})
	s := p.Peers[0]
	client, _, _ := strings.Cut(s.Peer, "/")
	if s.Role != "target" || s.State != "open" || s.Frames < 100 || s.Ops > 100_000 || client == d.addr() {
		t.Errorf("stat sessions says %+v", s)
	}
	for list, want := range map[string]string{"sessions": "open, resident", "peers": "(1 resident)"} {
		text := xdpfab(t, nil, []string{"stat", list, "--control", d.socket}).out.String()
		if !strings.Contains(text, want) || !strings.Contains(text, client) {
			t.Errorf("stat %s prints %q", list, text)
		}
	}
	ping.signal(os.Interrupt)
	ping.code()
	d.eventually("the client's session is gone", func() bool {
		return answer[control.PeerNodes](t, nil, "stat", "peers", "--control", d.socket).Total == 0
	})
}
