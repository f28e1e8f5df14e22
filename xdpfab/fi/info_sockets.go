// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"cmp"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What GetInfo offers by UDP sockets, to hints that ask for this transport.

// bySockets reports whether an info is of UDP sockets of this process.
func (i *Info) bySockets() bool {
	return i.Interface.Transport == TransportUDP.String() && i.Interface.Daemon == ""
}

// sockets lists what the hints may mean of interfaces with IP addresses, and returns why
// others cannot be used.
func (h *Info) sockets(interfaces []udpnode.Interface) (list []Info, unusable []error) {
	for _, i := range interfaces {
		ways, err := h.socketsOf(&i)
		if err != nil {
			unusable = append(unusable, err)
		}
		list = append(list, ways...)
	}
	return list, unusable
}

// socketsOf lists an interface with each of its addresses that UDP sockets can serve.
func (h *Info) socketsOf(i *udpnode.Interface) (list []Info, err error) {
	mtu, served, err := udpnode.Fit(i)
	for _, p := range served {
		a := p.Addr()
		in := InterfaceInfo{Name: i.Name, Index: i.Index, MAC: cmp.Or(i.MAC, wire.Addr{}.String()), MTU: mtu,
			Driver: "udp", Queues: 1, Transport: TransportUDP.String(), Address: a.String()}
		if h.Domain.Name == in.Address {
			in.Name = in.Address
		}
		format := AddrIPv6
		if a.Is4() {
			format = AddrIPv4
		}
		o := offer(in, format, in.Address, p.Masked().String())
		o.Missing = []string{}
		list = append(list, o)
	}
	return list, err
}

// carries refuses another transport than the info's. An attribute that is left out asks
// for none.
func (i *Info) carries(t Transport) error {
	if have := cmp.Or(i.Interface.Transport, TransportXDP.String()); t != TransportXDP && t.String() != have {
		return errno.Refuse(ErrNoInfo,
			"xdpfab: the info is of the transport %s, the attributes want %v: leave DomainAttr.Transport out, "+
				"or choose an info that GetInfo found for hints with Interface.Transport", have, t)
	}
	return nil
}
