// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Addresses of this node.

// elsewhereHere notes which other interface of this node has the peer's address. own is
// the index of the one that is asked, by a daemon or without one.
func (f *Finding) elsewhereHere(own int, ifname string, daemon bool) {
	if f.Own || !f.Peer.IsIP() {
		return
	}
	f.By = ifname + " is used here"
	if daemon {
		f.By = "this daemon serves " + ifname
	}
	all, _ := net.Interfaces() // without them nothing is known
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr() == f.Peer.IP && i.Index != own {
				f.Other = i.Name
			}
		}
	}
}

// portTaken reports whether a program of this node has the port of frames of an address.
func portTaken(ip netip.Addr) bool { return process.HasPort(netip.AddrPortFrom(ip, wire.UDPPort)) }

// Unserved returns the error of a dial that is in vain: the peer is another interface of
// this node, at which no program serves.
func Unserved(ctx context.Context, dom *xdpfab.Domain, peer wire.Addr) error {
	i := dom.Interface()
	f := Finding{Peer: peer, Own: owns(&i, peer)}
	f.elsewhereHere(i.Index, i.Name, i.Daemon != "")
	if f.Other == "" || i.Index == 0 || portTaken(peer.IP) || elsewhere(ctx, i.Daemon) {
		return nil
	}
	return errors.New(f.Hint(i.Name))
}

// taken is the verdict on this node's own address, if another program has its port.
func (d *diagnosis) taken() Step {
	who, remedy := "another program", "if it is xdpfabd, name its socket: --control PATH"
	pid := process.HolderOfPort(netip.AddrPortFrom(d.Peer.IP, wire.UDPPort))
	if sockets := process.ListensAt(pid); len(sockets) > 0 && process.Name(pid) == "xdpfabd" {
		who, remedy = fmt.Sprintf("xdpfabd, process %d,", pid), "name its socket: --control "+sockets[0]
	}
	return failed(fmt.Sprintf("%s has UDP port %d of %v, this node's own address", who, wire.UDPPort, d.Peer.IP),
		remedy)
}
