// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package udpport

import (
	"net"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func openPort(addrs []netip.Addr, mtu int, _ Options) (port, error) { return openPlain(addrs, mtu) }

// scout asks the system for ways from an address.
type scout struct{ from netip.Addr }

func newScout(from netip.Addr) (scout, error) { return scout{from}, nil }

// reach returns the address from which the system would send to another one.
func (s scout) reach(to netip.Addr) (netip.Addr, error) {
	var from *net.UDPAddr
	if !s.from.IsUnspecified() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.from, 0))
	}
	c, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, wire.UDPPort)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

func (s scout) close() error { return nil }
