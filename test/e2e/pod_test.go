// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// cluster is a host with two pods, and another host, as container runtimes join them:
//
//	node veth0 ──── port0 ┐
//	pod  veth0 ──── port1 ├ switch, with the host's address
//	pod  veth0 ──── port2 ┘
//
// Offloads are those that a kernel gives a veth.
type cluster struct {
	node *testnet.Side // another host, with AF_XDP
	host *testnet.Side // as seen on port0, its way to the node
	pods []*testnet.Side
}

func newCluster(t *testing.T) *cluster {
	s := testnet.NewStar(t, 3, testnet.Options{})
	hub, port := s.Port(0)
	host := on(t, hub, port)
	host.IP4 = s.Sides[2].IP4.Next()
	testnet.IP(t, hub, "link set switch address "+host.MAC.String(), "addr add "+host.IP4.String()+"/24 dev switch")
	return &cluster{s.Sides[0], host, s.Sides[1:]}
}

// on is a side as seen on another one of its interfaces.
func on(t *testing.T, side *testnet.Side, ifname string) *testnet.Side {
	t.Helper()
	s := *side
	err := side.Do(func() error {
		i, err := net.InterfaceByName(ifname)
		if err == nil {
			s.IfName, s.IfIndex, s.MAC = ifname, i.Index, i.HardwareAddr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// add adds 5 to the first word of a region of a peer, and returns what was there.
func (c *cluster) add(t *testing.T, from *testnet.Side, peer, region, transport string, options ...option) int {
	t.Helper()
	args := fmt.Sprintf("atomic sum uint64 5 -q --region %s --peer %s -i %s --transport %s", region, peer, from.IfName, transport)
	p := start(t, from, xdpfabPath, strings.Fields(args), options...)
	p.wants(0)
	var was int
	if _, err := fmt.Sscan(p.out.String(), &was); err != nil {
		t.Fatalf("%s: %v: %s", args, err, p.out.String())
	}
	return was
}

// Daemons with AF_XDP in a pod, on the host's own port of the bridge, and on the bridge:
// they serve ordinary and resident regions, by MAC and by IP address, to peers on AF_XDP
// and on UDP sockets. What a pod sends to its own host does not pass the host's port.
func TestPod(t *testing.T) {
	testnet.Require(t)
	c := newCluster(t)
	bridge := on(t, c.host, "switch")
	for _, at := range []struct {
		name string
		side *testnet.Side
		xdp  string
		pods bool // serves pods of its host, too
	}{{"inside", c.pods[0], "native", true}, {"host", c.host, "native", false}, {"bridge", bridge, "generic", true}} {
		t.Run(at.name, func(t *testing.T) {
			d := serve(t, at.side, "--xdp", at.xdp, "--region", "r=4KiB", "--region", "hot=4KiB:resident",
				"--pin", "none")
			ip := at.side.IP4.String()
			s, err := d.ask()
			if err != nil || s.Interface.XDP != at.xdp || !strings.Contains(s.Interface.Served, ip) {
				t.Fatalf("%+v, %v: want %s XDP, serving %s", s.Interface, err, at.xdp, ip)
			}
			for _, region := range []string{"r", "hot"} {
				sum := 0
				add := func(from *testnet.Side, peer, transport string) {
					if was := c.add(t, from, peer, region, transport); was != sum {
						t.Errorf("%s: %s by %s: found %d, want %d", region, peer, transport, was, sum)
					}
					sum += 5
				}
				add(c.node, at.side.MAC.String(), "xdp")
				add(c.node, ip, "xdp")
				add(c.node, ip, "udp")
				if at.pods {
					add(c.pods[1], ip, "udp")
					add(c.pods[1], ip, "xdp")
				}
			}
			d.end()
		})
	}
}

// A pod without a privilege serves by UDP sockets, and reaches others so.
func TestPodBySockets(t *testing.T) {
	testnet.Require(t)
	c := newCluster(t)
	pod := c.pods[0]
	socket := filepath.Join(nobodysDir(t), socketName)
	d := &node{start(t, pod, xdpfabdPath, []string{"--interface", pod.IfName, "--control", socket, "--transport", "udp",
		"--region", "r=4KiB"}, env("NOTIFY_SOCKET="), unprivileged), pod, socket}
	d.ready()
	s, err := d.ask()
	if err != nil || !strings.Contains(s.Interface.Served, pod.IP4.String()+"/24") || strings.Contains(d.err.String(), "no IP address") {
		t.Errorf("serving %q, %v: %s", s.Interface.Served, err, d.err.String())
	}
	for n, transport := range []string{"udp", "xdp"} {
		if was := c.add(t, c.node, pod.IP4.String(), "r", transport); was != 5*n {
			t.Errorf("by %s: found %d, want %d", transport, was, 5*n)
		}
	}
	d.end()
	other := serve(t, c.node, "--region", "r=4KiB")
	if was := c.add(t, pod, c.node.IP4.String(), "r", "udp", unprivileged); was != 0 {
		t.Errorf("from the pod: found %d", was)
	}
	other.end()
}

// Programs in a pod go through the daemon of the host, whose control socket the pod has:
// without a privilege, and without an interface of the host's in their namespace.
func TestPodThroughTheHost(t *testing.T) {
	testnet.Require(t)
	c := newCluster(t)
	dir := nobodysDir(t) // and then root's, or others could replace the socket
	if err := os.Chown(dir, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	host := launch(t, c.host, filepath.Join(dir, socketName), "--socket-mode", "0666", "--guest",
		fmt.Sprintf("allow:user=%d,memory=16MiB", nobody))
	host.ready()
	other := serve(t, c.node, "--region", "r=4KiB")
	for n, peer := range []string{c.node.MAC.String(), c.node.IP4.String()} {
		args := fmt.Sprintf("atomic sum uint64 5 -q --region r --peer %s -i %s --control %s", peer, c.host.IfName, host.socket)
		p := start(t, c.pods[0], xdpfabPath, strings.Fields(args), unprivileged)
		if p.wants(0); strings.TrimSpace(p.out.String()) != fmt.Sprint(5*n) {
			t.Errorf("%s: found %q, want %d", peer, p.out.String(), 5*n)
		}
	}
	host.end()
	other.end()
}
