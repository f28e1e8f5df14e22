// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
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

// besideDaemon is the error of an interface that is in use since flags lead past its
// daemon, in place of what the kernel tells of that.
func (a *app) besideDaemon(ctx context.Context, f *linkFlags, err error) error {
	all, failed := a.settings()
	if !errors.Is(err, syscall.EBUSY) || f.looksForDaemon() || failed != nil {
		return err
	}
	socket := all.Get(settings.Control).Value
	s := statusOf(ctx, f.ifname, socket, f.giveUp)
	if s.status == nil {
		return err
	}
	remedy := "leave out --transport udp"
	switch {
	case f.direct:
		remedy = "leave out --direct"
	case f.transportBy != "":
		remedy = "unset the transport udp, which " + f.transportBy + " names"
	}
	return interfaceError(fmt.Errorf("xdpfabd, process %d, serves %s at %s: %s", s.status.PID, f.ifname,
		controlOf(f.ifname, socket), remedy))
}
