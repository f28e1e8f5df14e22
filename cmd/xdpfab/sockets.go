// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// sockets are the addresses at which UDP sockets can serve an interface, whatever AF_XDP
// wants, and without a privilege.
type sockets []netip.Addr

func socketsOf(ifname string) sockets {
	addrs, err := udpport.Addrs(ifname)
	if err != nil {
		return sockets{}
	}
	return addrs
}

// String says so in a line.
func (s sockets) String() string {
	if len(s) == 0 {
		return "none: the interface has no IP address that depends on no link"
	}
	var b strings.Builder
	for _, a := range s {
		fmt.Fprintf(&b, "%v ", a)
	}
	return b.String() + "with --transport udp: slower, and without a privilege"
}

// how says by what the daemon carries frames, unless it is AF_XDP.
func (s *servedBy) how() string {
	if s.Transport == fi.TransportUDP.String() {
		return ", by UDP sockets"
	}
	return ""
}
