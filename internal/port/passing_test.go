// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The kernel's own traffic is not disturbed: UDP to another port and TCP, over
// IPv4 and IPv6, while xdpfab's frames go over the same cable.
func TestKernelTrafficPasses(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{UDP: true, RingSize: 256})
	s := newStream(t, a, b, wire.UDP4, 0)
	for _, at := range []struct{ local, remote netip.Addr }{{a.side.IP4, b.side.IP4}, {a.side.IP6, b.side.IP6}} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(network+" "+at.remote.String(), func(t *testing.T) {
				echo := serve(t, b.side, network, at.remote)
				var c net.Conn
				err := a.side.Do(func() (err error) { c, err = net.DialTimeout(network, echo, patience); return err })
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				for i := range 20 {
					s.run(t, a.Queues()[0], b.Queues()[0], 20, 4)
					want := strings.Repeat(strconv.Itoa(i%10), 50+i*50)
					if _, err := io.WriteString(c, want); err != nil {
						t.Fatal(err)
					}
					got := make([]byte, len(want))
					if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
						t.Fatalf("echo of %d bytes: %v", len(want), err)
					}
				}
			})
		}
	}
}

// An echo request (RFC 792) is answered by the other kernel.
func TestPingPasses(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{UDP: true, RingSize: 256})
	var c net.Conn
	err := a.side.Do(func() (err error) { c, err = net.Dial("ip4:icmp", b.side.IP4.String()); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	// Type 8, code 0, checksum, identifier, number.
	if _, err := c.Write([]byte{8, 0, 0x08, 0xb8, 0x88, 0xb5, 0x66, 0x92}); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64) // behind an IPv4 header of 20 bytes, at type 0
	n, err := c.Read(reply)
	if err != nil || n != 28 || reply[20] != 0 || string(reply[24:28]) != "\x88\xb5\x66\x92" {
		t.Errorf("reply %x, %v", reply[:n], err)
	}
	if c := b.counters(t); c["xdp_pass_other"] == 0 || c["xdp_redirect"] != 0 {
		t.Errorf("counters %v", c)
	}
}

// serve echoes until the test ends, and returns its address.
func serve(t *testing.T, side *testnet.Side, network string, ip netip.Addr) (addr string) {
	t.Helper()
	at := netip.AddrPortFrom(ip, 0).String()
	var closer io.Closer
	err := side.Do(func() error {
		if network == "udp" {
			c, err := net.ListenPacket(network, at)
			if err != nil {
				return err
			}
			closer, addr = c, c.LocalAddr().String()
			go func() {
				buf := make([]byte, 2048)
				for {
					n, from, err := c.ReadFrom(buf)
					if err != nil {
						return
					}
					c.WriteTo(buf[:n], from)
				}
			}()
			return nil
		}
		l, err := net.Listen(network, at)
		if err != nil {
			return err
		}
		closer, addr = l, l.Addr().String()
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closer.Close() })
	return addr
}
