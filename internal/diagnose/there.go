// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The steps on the way, and at the peer's host.

// thisNode is why nothing is asked of the network.
const thisNode = "the address is this node's"

func (d *diagnosis) lookAtRoute(context.Context) Step {
	switch {
	case !d.known || d.away:
		return leftOut("the interface is not in this network namespace")
	case d.Own || d.Other != "":
		return leftOut(thisNode)
	case d.nic.MAC == "":
		return leftOut(d.Interface + " has no MAC address: UDP sockets leave the way to the kernel")
	case !d.nic.Up:
		return leftOut("the interface is down")
	}
	w, err := look(d.nic.Index, d.Peer)
	if err != nil {
		w.close()
		return doubtful(tell.Plain(err), "")
	}
	d.way = &w
	switch {
	case !d.Peer.IsIP():
		return ok("none is needed to a MAC address on this segment")
	case w.err != nil:
		d.Nobody = w.err
		remedy := "ip route add, or name the interface that leads there"
		if errors.Is(w.err, route.ErrNoSource) {
			remedy = "ip address add ADDRESS/LENGTH dev " + d.Interface
		}
		return Step{Verdict: Failed, Place: Here, Detail: tell.Plain(w.err), Remedy: remedy}
	case w.gateway() != "":
		d.Gateway = w.gateway()
		return ok(fmt.Sprintf("from %v by the router %s: raw Ethernet cannot reach the peer", w.hop.Source, d.Gateway))
	}
	return ok(fmt.Sprintf("from %v, on this segment", w.hop.Source))
}

func (d *diagnosis) askNeighbour(ctx context.Context) Step {
	switch {
	case d.Own || d.Other != "":
		return leftOut(thisNode)
	case d.way == nil || d.way.err != nil:
		return leftOut("there is no way to the peer")
	case !d.Peer.IsIP():
		return d.askMAC(ctx)
	}
	mac, err := d.way.neighbour(ctx, d.Interface, d.Peer.IP, d.privileged)
	if err != nil {
		d.Nobody = fmt.Errorf("nobody answers for %v on %s", d.way.hop.Next(d.Peer.IP), d.Interface)
		return failed(fmt.Sprintf("%v has answered neither ARP nor neighbour discovery", d.way.hop.Next(d.Peer.IP)),
			"check the address, the peer's `ip address`, and that both are in one VLAN")
	}
	d.Neighbour = true
	if d.Gateway == "" {
		d.Tried = append(d.Tried, wire.Addr{MAC: mac, Endpoint: d.Peer.Endpoint, Lane: d.Peer.Lane}.String())
	}
	return ok(fmt.Sprintf("%v is at %v", d.way.hop.Next(d.Peer.IP), mac))
}

// askMAC looks whether a host is known to have the peer's MAC address. It asks for the
// link-local address that most hosts make of their MAC address.
func (d *diagnosis) askMAC(ctx context.Context) Step {
	if len(d.way.aliases) == 0 && d.privileged {
		ip := linkLocal(d.Peer.MAC)
		if mac, err := d.way.neighbour(ctx, d.Interface, ip, true); err == nil && mac == d.Peer.MAC {
			d.way.aliases = []netip.Addr{ip}
		}
	}
	for _, ip := range d.way.aliases {
		d.Tried = append(d.Tried, wire.Addr{IP: ip, Endpoint: d.Peer.Endpoint, Lane: d.Peer.Lane}.String())
	}
	if len(d.way.aliases) == 0 {
		return doubtful("no IP address of "+d.Peer.MAC.String()+" is known here, so nothing tells whether it exists",
			"compare it with `ip link` at the peer, or give the peer's IP address")
	}
	d.Neighbour = true
	return ok("the host with it has " + strings.Join(d.Tried, " "))
}

// answersOverUDP reports whether a session over UDP has been answered: then nothing is
// left to ask of the port.
func (d *diagnosis) answersOverUDP() bool {
	if d.Peer.IsIP() {
		return d.refused || d.peer != nil && d.addr == d.Peer.String()
	}
	return d.Answers != ""
}

func (d *diagnosis) knockAtPort(ctx context.Context) Step {
	to := d.Peer.IP
	switch {
	case d.Own || d.Other != "":
		return leftOut(thisNode)
	case d.way == nil || d.way.err != nil:
		return leftOut("there is no way to the peer")
	case d.Nobody != nil:
		return leftOut("nobody has this address")
	case d.answersOverUDP():
		return ok(fmt.Sprintf("UDP port %d takes frames: a session over it was answered", wire.UDPPort))
	case !to.IsValid() && len(d.way.aliases) == 0:
		return leftOut("no IP address of the peer is known")
	case !to.IsValid():
		to = d.way.aliases[0]
	}
	port, err := knock(ctx, d.Interface, to, knocks)
	if d.Port = port; err != nil {
		return doubtful(fmt.Sprintf("a datagram to %v: %v", to, err), "")
	}
	text := fmt.Sprintf("UDP port %d of %v", wire.UDPPort, to)
	switch {
	case port == PortSilent:
		return doubtful("no refusal: "+text+" takes datagrams, or something on the way drops them", "")
	case !d.Peer.IsIP():
		return ok(text + " is refused: the host is up, and serves no UDP")
	}
	if d.peer != nil { // by the other encapsulation
		return failed(text+" is refused: the peer has UDP off", "use "+d.Answers+", or have the peer serve UDP: "+
			"xdpfabd without --udp=false, no DomainAttr.EthernetOnly")
	}
	return failed(text+" is refused: the host is up, and no daemon there serves UDP",
		"start xdpfabd at the peer, on the interface with this address")
}
