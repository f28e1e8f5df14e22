// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// NetInterface is a network interface as a device.
type NetInterface struct {
	Alone
	*port.Interface
}

// Ports implements Device.
func (n NetInterface) Ports() []engine.Port {
	var ports []engine.Port
	for _, q := range n.Queues() {
		ports = append(ports, q)
	}
	return ports
}

// Sifted implements Device: the XDP program looks at addresses.
func (NetInterface) Sifted() bool { return true }

// OwnFault implements Device.
func (n NetInterface) OwnFault(to wire.Addr) string { return n.Interface.OwnFault(to) }

// Info implements Device.
func (n NetInterface) Info() InterfaceInfo {
	m := n.Modes()
	served, above := n.Served()
	return InterfaceInfo{
		Name: n.Name(), Index: n.Index(), MAC: wire.Addr{MAC: n.MAC()}.String(), MTU: n.MTU(), Driver: n.Driver(),
		Queues: len(n.Queues()), Relayed: n.Forwarders(), XDP: m.XDP.String(), Copy: m.Copy.String(),
		Chunk: n.Chunk(), HugeUMEM: m.Pages == xsk.PagesHuge, UDP: n.UDP(), Transport: "xdp",
		Served: served, Above: above,
	}
}

// Cross implements Device.
func (i NetInterface) Cross(n *Node, e *engine.Engine) {
	i.Mind(func(packet []byte) { e.Deliver(packet, false) }, n.Happened)
}
