// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
)

func probe(ctx context.Context, ifname string) (Probe, error) {
	p, err := port.Probe(ctx, ifname, port.Options{UDP: true, Execute: true})
	if err != nil {
		return Probe{}, fmt.Errorf("xdpfab: probing: %w", ours(ifname, err))
	}
	info := Probe{InterfaceInfo: InterfaceInfo(node.NetInterface{Interface: p.Interface}.Info()), Refused: []string{},
		OpeningSeconds: p.Opening.Seconds()}
	info.UDP = false // whether it is on is the caller's choice
	for _, err := range p.Refused {
		info.Refused = append(info.Refused, err.Error())
	}
	return info, nil
}
