// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The interface keeps the kernel's traffic, at both ends, while a client keeps the daemon
// busy: ARP and neighbour discovery, UDP and TCP, over IPv4 and IPv6.
func TestKernelTraffic(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	d := serve(t, pair.B, "--region", "r=4KiB")
	l := &loaded{node: d, t: t, net: pair}
	bench := start(t, pair.A, xdpfabPath, []string{"bench", pair.B.IP4.String(), "-i", pair.A.IfName, "--region", "r", "--mode", "throughput", "--warmup", "1ms", "--duration", "1h", "--json"})
	l.busy(bench)
	for _, addr := range []netip.Addr{pair.B.IP4, pair.B.IP6} {
		for round := range 2 {
			testnet.IP(t, pair.A, "neigh flush dev "+pair.A.IfName)
			testnet.IP(t, pair.B, "neigh flush dev "+pair.B.IfName)
			udpEcho(t, pair, addr)
			if !resolved(t, pair.A, addr) {
				t.Errorf("round %d: %s is no neighbour after talking to it", round, addr)
			}
			tcpEcho(t, pair, addr)
		}
	}
	before := d.counters()["ops_executed"]
	bench.eventually("going on", func() bool { return d.counters()["ops_executed"] > before })
	bench.signal(unix.SIGINT) // ends the measurement, which is then verified and printed
	if b := decoded[benchReport](bench); !b.Verified || b.Acknowledged == 0 {
		t.Errorf("bench beside the kernel's traffic: %+v", b)
	}
	c := d.counters()
	if c["xdp_pass_other"] == 0 || c["xdp_redirect"] == 0 {
		t.Errorf("the XDP program passed %d and redirected %d packets", c["xdp_pass_other"], c["xdp_redirect"])
	}
	d.end()
}

// resolved reports whether the kernel knows the neighbour's MAC address.
func resolved(t *testing.T, side *testnet.Side, addr netip.Addr) bool {
	t.Helper()
	h, err := netlink.NewHandleAt(side.NS, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	list, err := h.NeighList(side.IfIndex, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list {
		if got, ok := netip.AddrFromSlice(n.IP); ok && got.Unmap() == addr && len(n.HardwareAddr) == 6 {
			return true
		}
	}
	return false
}

// inside makes something, such as a socket, in a side's namespace.
func inside[T any](t *testing.T, side *testnet.Side, f func() (T, error)) (v T) {
	t.Helper()
	if err := side.Do(func() (err error) {
		v, err = f()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

// udpEcho sends datagrams there and back. Datagrams may get lost, so each is tried
// several times.
func udpEcho(t *testing.T, pair *testnet.Pair, addr netip.Addr) {
	t.Helper()
	udpEchoOf(t, pair, addr, 1, 46, 1200, 1452)
}

// udpEchoOf is udpEcho with datagrams of the given sizes, in bytes.
func udpEchoOf(t *testing.T, pair *testnet.Pair, addr netip.Addr, sizes ...int) {
	t.Helper()
	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 7))
	server := inside(t, pair.B, func() (*net.UDPConn, error) { return net.ListenUDP("udp", at) })
	defer server.Close()
	client := inside(t, pair.A, func() (*net.UDPConn, error) { return net.DialUDP("udp", nil, at) })
	defer client.Close()
	go func() {
		var b [2048]byte
		for {
			n, from, err := server.ReadFromUDPAddrPort(b[:])
			if err != nil {
				return
			}
			_, _ = server.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	for _, size := range sizes {
		sent, got := random(size), make([]byte, 2048)
		for end := time.Now().Add(limit); ; {
			if _, err := client.Write(sent); err != nil {
				t.Fatal(err)
			}
			_ = client.SetReadDeadline(time.Now().Add(time.Second))
			n, err := client.Read(got)
			if err == nil && bytes.Equal(got[:n], sent) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d bytes over UDP do not come back: %d, %v", addr, size, n, err)
			}
		}
	}
}

// tcpEcho sends a megabyte there and back.
func tcpEcho(t *testing.T, pair *testnet.Pair, addr netip.Addr) {
	t.Helper()
	at := netip.AddrPortFrom(addr, 7).String()
	listener := inside(t, pair.B, func() (net.Listener, error) { return net.Listen("tcp", at) })
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	client := inside(t, pair.A, func() (net.Conn, error) { return net.DialTimeout("tcp", at, limit) })
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(limit))
	sent := random(1 << 20)
	go func() {
		_, _ = client.Write(sent)
		_ = client.(*net.TCPConn).CloseWrite()
	}()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%s: of a megabyte over TCP %d bytes came back, %v", addr, len(got), err)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
