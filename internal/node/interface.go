// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// InterfaceInfo describes an interface and the mode that it is used in: InterfaceInfo,
// field by field, as devices, hosts and guests have it.
type InterfaceInfo struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	MAC      string `json:"mac"`
	MTU      int    `json:"mtu"` // bytes
	Driver   string `json:"driver"`
	Queues   int    `json:"queues"` // in use
	Relayed  int    `json:"relayed,omitempty"`
	XDP      string `json:"xdp"`
	Copy     string `json:"copy"`
	Chunk    int    `json:"chunk"` // bytes of a packet buffer
	HugeUMEM bool   `json:"huge_umem"`
	UDP      bool   `json:"udp"`
	Daemon   string `json:"daemon,omitempty"`
	Lent     bool   `json:"lent,omitempty"`

	Transport string `json:"transport,omitempty"`
	Address   string `json:"address,omitempty"`
	NoXDP     string `json:"no_xdp,omitempty"`
}

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

// Info implements Device.
func (n NetInterface) Info() InterfaceInfo {
	m := n.Modes()
	return InterfaceInfo{
		Name: n.Name(), Index: n.Index(), MAC: wire.Addr{MAC: n.MAC()}.String(), MTU: n.MTU(), Driver: n.Driver(),
		Queues: len(n.Queues()), Relayed: n.Strays(), XDP: m.XDP.String(), Copy: m.Copy.String(),
		Chunk: n.Chunk(), HugeUMEM: m.Pages == xsk.PagesHuge, UDP: n.UDP(), Transport: "xdp",
	}
}

// Beyond implements Device.
func (i NetInterface) Beyond(n *Node) (Beyond, int) {
	if len(i.Spares()) == 0 {
		return Beyond{}, 0
	}
	return Beyond{Elsewhere: n.elsewhere, Outside: n.outside}, 0
}

// Cross implements Device.
func (i NetInterface) Cross(n *Node, e *engine.Engine) {
	i.Mind(func(packet []byte) { e.Deliver(packet, false) }, n.Happened)
}
