// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

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
	home *home // nil unless what is resident outlives the process
}

var copyModes = [...]xsk.Mode{CopyAuto: xsk.Auto, CopyForce: xsk.Copy, ZeroCopyForce: xsk.ZeroCopy}

func openInterface(ctx context.Context, ifname string, a DomainAttr) (device, error) {
	o := port.Options{Queues: a.Queues, Lend: a.Lend, Copy: copyModes[a.Copy], Generic: a.Generic, UDP: a.UDP, Execute: true}
	if a.handed != nil {
		return a.handed.openDevice(ctx, ifname, o)
	}
	if a.ResidentPin != "" {
		return openAtHome(ctx, ifname, a.ResidentPin, o)
	}
	i, err := port.Open(ctx, ifname, o)
	if err != nil {
		return nil, err
	}
	return netInterface{Interface: i}, nil
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
