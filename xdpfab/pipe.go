// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// pipeMTU is the MTU of Ethernet.
const pipeMTU = 1500

// pipeEnd is the device at one end of a Pipe.
type pipeEnd struct {
	alone
	port *port.Memory
	mac  wire.MAC
}

func (p *pipeEnd) Ports() []engine.Port { return []engine.Port{p.port} }
func (p *pipeEnd) MAC() wire.MAC        { return p.mac }
func (p *pipeEnd) MTU() int             { return pipeMTU }
func (p *pipeEnd) Close() error         { return nil }

// Nothing about a pipe ever changes.
func (p *pipeEnd) Watch(func(port.Event))                                     {}
func (p *pipeEnd) Follow(wire.Addr, wire.Link, func(wire.Link)) (stop func()) { return func() {} }
func (p *pipeEnd) Silent(netip.Addr)                                          {}

func (p *pipeEnd) Counters() (map[string]uint64, error) { return map[string]uint64{}, nil }

func (p *pipeEnd) Info() interfaceInfo {
	return interfaceInfo{Name: "pipe", MAC: wire.Addr{MAC: p.mac}.String(), MTU: pipeMTU, Driver: "memory", Queues: 1}
}

func (p *pipeEnd) Link(_ context.Context, a wire.Addr) (wire.Link, error) {
	if a.IsIP() {
		return wire.Link{}, fmt.Errorf("a pipe has no IP addresses: want %s or %s: %w", "02:00:00:00:00:0a", "02:00:00:00:00:0b", errno.NotImplemented)
	}
	return wire.Link{Kind: wire.Ethernet, Local: p.mac, Remote: a.MAC}, nil
}
