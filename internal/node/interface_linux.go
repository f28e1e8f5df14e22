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

// Lender is a device that may have queues to lend.
type Lender interface {
	Lend() (*port.Loan, error)
	Spares() []port.LendableQueue
	Mind(deliver func([]byte), happened func(port.Event))

	// For a takeover; see port.Interface.
	Leave() (*port.Inheritance, error)
	Inherited(queue int) (*port.Loan, error)
	Settle()
}
