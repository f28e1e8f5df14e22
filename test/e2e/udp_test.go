// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// nobodysDir makes a folder that nobody owns.
func nobodysDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "xdpfab-e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Nobody, without a capability, serves memory by UDP sockets and adds to it; so does a
// client with AF_XDP. Each says what it uses, and what to do without AF_XDP.
func TestSockets(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	socket := filepath.Join(nobodysDir(t), socketName)
	d := &node{start(t, net.B, xdpfabdPath, []string{"--interface", net.B.IfName, "--control", socket,
		"--transport", "udp", "--region", "r=4KiB", "--guest", "allow:user=0"}, env("NOTIFY_SOCKET="), unprivileged), net.B, socket}
	d.ready()
	if s, err := d.ask(); err != nil || s.Interface.Transport != "udp" {
		t.Errorf("%+v, %v: want the transport udp", s.Interface, err)
	}
	adds := 0
	add := func(peer, transport string, options ...option) *process {
		t.Helper()
		args := "atomic sum uint64 5 -q --region r --peer " + peer + " -i " + net.A.IfName + " --transport " + transport
		return start(t, net.A, xdpfabPath, strings.Fields(args), options...)
	}
	for _, peer := range []string{net.B.IP4.String(), net.B.IP6.String()} {
		add(peer, "udp", unprivileged).wants(0)
		add(peer, "auto", unprivileged).wants(0)
		add(peer, "auto").wants(0)
		add(peer, "xdp").wants(0)
		adds += 4
	}
	last := add(net.B.IP4.String(), "udp")
	if last.wants(0); strings.TrimSpace(last.out.String()) != "40" || adds != 8 {
		t.Errorf("found %q, want 40 after %d additions", last.out.String(), adds)
	}
	add(net.B.IP4.String(), "xdp", unprivileged).wants(5, "--transport udp")
	add(net.B.MAC.String(), "udp").wants(2, "want the peer's IP address")
	info := xdpfab(t, net.B, []string{"info", net.B.IfName, "--control", socket})
	if info.wants(0); !strings.Contains(info.out.String(), "by UDP sockets") ||
		!strings.Contains(info.out.String(), net.B.IP4.String()) {
		t.Errorf("info does not tell: %s", info.out.String())
	}
	start(t, net.B, xdpfabdPath, []string{"--interface", net.B.IfName, "--control",
		filepath.Join(t.TempDir(), socketName), "--transport", "udp"}, env("NOTIFY_SOCKET=")).wants(5, "serves "+net.B.IfName+" already, at "+socket, "stop it first, or serve another interface")
	// What takes an XDP program is refused while the daemon runs, too.
	xdpfab(t, net.B, []string{"region", "create", "hot=4KiB:resident", "--control", socket}).wants(1, "UDP sockets", "--transport xdp")
	xdpfab(t, net.B, []string{"ping", net.A.IP4.String(), "-i", net.B.IfName, "--control", socket, "--borrow"}).wants(5, "UDP sockets", "--transport xdp --lend")
	for _, transport := range []string{"xdp", "auto"} {
		next := launch(t, net.B, socket, "--takeover", "--transport", transport, "--region", "r=4KiB")
		next.wants(1, "UDP sockets", "stop it and start the other")
	}
	add(net.B.IP4.String(), "udp").wants(0)
	d.end()
}
