// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// interfaceInfo describes an interface and the mode that it is used in: InterfaceInfo,
// field by field, as devices, hosts and guests have it.
type interfaceInfo struct {
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
}

// netInterface is a network interface as a device.
type netInterface struct {
	alone
	*port.Interface
}

func (n netInterface) Ports() []engine.Port {
	var ports []engine.Port
	for _, q := range n.Queues() {
		ports = append(ports, q)
	}
	return ports
}

func (n netInterface) Info() interfaceInfo {
	m := n.Modes()
	return interfaceInfo{
		Name: n.Name(), Index: n.Index(), MAC: wire.Addr{MAC: n.MAC()}.String(), MTU: n.MTU(), Driver: n.Driver(),
		Queues: len(n.Queues()), Relayed: n.Strays(), XDP: m.XDP.String(), Copy: m.Copy.String(),
		Chunk: n.Chunk(), HugeUMEM: m.Pages == xsk.PagesHuge, UDP: n.UDP(),
	}
}

func (i netInterface) beyond(n *Node) (beyond, int) {
	if len(i.Spares()) == 0 {
		return beyond{}, 0
	}
	return beyond{elsewhere: n.elsewhere, outside: n.outside}, 0
}

func (i netInterface) cross(n *Node, e *engine.Engine) {
	i.Mind(func(packet []byte) { e.Deliver(packet, false) }, n.happened)
}
