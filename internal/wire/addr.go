// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Addr names an endpoint of a node: by MAC address on the same Ethernet segment, or by IP
// address over UDP, whichever is set. It is comparable. The text form is the address,
// followed by "/endpoint" or "/lane.endpoint" when these are not zero:
//
//	02:00:00:00:00:0b   10.0.0.2/3   fd00::2/1.3
type Addr struct {
	MAC      MAC
	IP       netip.Addr // valid: the peer is reached over UDP
	Endpoint uint16     // endpoint number at the node
	Lane     uint8      // lane that the endpoint listens on, below MaxLanes
}

// ErrAddr is what ParseAddr's errors wrap.
var ErrAddr = errors.New("bad address")

// IsIP reports whether the peer is reached over UDP.
func (a Addr) IsIP() bool { return a.IP.IsValid() }

// Kind returns the encapsulation that reaches the peer.
func (a Addr) Kind() Kind {
	switch {
	case a.IP.Is4():
		return UDP4
	case a.IP.Is6():
		return UDP6
	}
	return Ethernet
}

// String returns the text form, which ParseAddr reads back.
func (a Addr) String() string {
	s := a.MAC.String()
	if a.IsIP() {
		s = a.IP.String()
	}
	switch {
	case a.Lane != 0:
		return fmt.Sprintf("%s/%d.%d", s, a.Lane, a.Endpoint)
	case a.Endpoint != 0:
		return fmt.Sprintf("%s/%d", s, a.Endpoint)
	}
	return s
}

// ParseAddr reads the text form of an address. Its errors wrap ErrAddr.
func ParseAddr(s string) (Addr, error) {
	if _, rest, is := strings.Cut(s, "://"); is {
		host, _, _ := strings.Cut(rest, "/")
		return Addr{}, fmt.Errorf("%w %q: want no URL, but the address alone: %s", ErrAddr, s, host)
	}
	host, suffix, hasSuffix := strings.Cut(s, "/")
	a, err := parseHost(host)
	if err == nil && hasSuffix {
		err = a.parseSuffix(suffix)
	}
	if err != nil {
		return Addr{}, fmt.Errorf("%w %q: %w", ErrAddr, s, err)
	}
	return a, nil
}

// parseHost reads a unicast MAC or IP address.
func parseHost(s string) (a Addr, err error) {
	// An 8-byte EUI-64 can look like an IPv6 address; only six bytes make a MAC
	// address.
	if mac, err := net.ParseMAC(s); err == nil && len(mac) == len(a.MAC) {
		a.MAC = MAC(mac)
		switch {
		case a.MAC == MAC{}:
			return a, errors.New("the zero MAC address names no node; use the peer's, as `ip link` shows it")
		case a.MAC[0]&1 != 0:
			return a, errors.New("a multicast or broadcast MAC address names no single node; use the peer's own")
		}
		return a, nil
	}
	ip, err := netip.ParseAddr(s)
	if err != nil {
		if p, e := netip.ParseAddrPort(s); e == nil {
			return a, fmt.Errorf("leave out the port, which is %d on every node: %v", UDPPort, p.Addr())
		}
		if i := strings.LastIndex(s, ":"); i >= 0 && len(s)-i != len(":00") { // no further byte
			if mac, e := net.ParseMAC(s[:i]); e == nil && len(mac) == len(a.MAC) {
				return a, fmt.Errorf("want the endpoint number after a slash: %s/%s", s[:i], s[i+1:])
			}
		}
		return a, errors.New(
			"neither a MAC address such as 02:00:00:00:00:0b nor an IP address such as 10.0.0.2 or fd00::2")
	}
	a.IP = ip.Unmap()
	switch {
	case ip.Zone() != "":
		return a, errors.New("leave out the zone: the interface is the one that the domain was opened on")
	case a.IP.IsUnspecified() || a.IP.IsMulticast() || a.IP == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, errors.New("not the address of one node; use a unicast address")
	}
	return a, nil
}

// CheckEndpoint returns what is wrong with the part of an address behind the slash.
func CheckEndpoint(s string) error { return new(Addr).parseSuffix(s) }

// parseSuffix reads "endpoint" or "lane.endpoint".
func (a *Addr) parseSuffix(s string) error {
	if lane, endpoint, ok := strings.Cut(s, "."); ok {
		n, err := strconv.ParseUint(lane, 10, 8)
		if err != nil || n >= MaxLanes {
			return fmt.Errorf("lane %q, want a number from 0 to %d", lane, MaxLanes-1)
		}
		a.Lane, s = uint8(n), endpoint
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return fmt.Errorf("endpoint %q after the slash, want a number from 0 to 65535, or lane.endpoint", s)
	}
	a.Endpoint = uint16(n)
	return nil
}
