// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// PipeMTU is the MTU of Ethernet.
const PipeMTU = 1500

// PipeEnd is the device at one end of a Pipe, or at a switch in memory.
type PipeEnd struct {
	Alone
	Port *port.Memory
	Mac  wire.MAC
}

// NewPipe returns both ends of a cable in memory.
func NewPipe() (a, b *PipeEnd) {
	pa, pb := port.NewMemoryPair(PipeMTU, 1)
	return &PipeEnd{Port: pa, Mac: pipeMAC(0)}, &PipeEnd{Port: pb, Mac: pipeMAC(1)}
}

// NewSwitch returns the ends of n cables that a switch in memory joins.
func NewSwitch(n int) []*PipeEnd {
	addresses, ends := make([]wire.MAC, n), make([]*PipeEnd, n)
	for i := range addresses {
		addresses[i] = pipeMAC(i)
	}
	for i, p := range port.NewMemorySwitch(PipeMTU, 1, addresses) {
		ends[i] = &PipeEnd{Port: p, Mac: addresses[i]}
	}
	return ends
}

// MostPipes is how many ends a switch can have.
const MostPipes = 1024

// pipeMAC is the address at an end: it ends with 0a, 0b and so on.
func pipeMAC(i int) wire.MAC { return wire.MAC{2, 0, 0, 0, byte((i + 0x0a) >> 8), byte(i + 0x0a)} }

// Cable returns the ends of a pipe between domains. Tests put other devices in their
// place.
var Cable = func() (ends [2]Device, err error) {
	a, b := NewPipe()
	return [2]Device{a, b}, nil
}

// DomainOn makes a domain of a device, with a fi.DomainAttr. Package xdpfab/fi sets it,
// for tests that join a domain to a node.
var DomainOn func(dev Device, attr any) (any, error)

// Ports implements Device.
func (p *PipeEnd) Ports() []engine.Port { return []engine.Port{p.Port} }

// MAC implements Device.
func (p *PipeEnd) MAC() wire.MAC { return p.Mac }

// MTU implements Device.
func (p *PipeEnd) MTU() int { return PipeMTU }

// Close implements Device.
func (p *PipeEnd) Close() error { return nil }

// mostInMemory is the most bytes that a region of a node in memory has. The Go runtime
// ends the process if the heap cannot grow.
const mostInMemory = 1 << 36

// Memory returns memory of the Go heap. It stays as long as anything points to it: a test
// crashes a node while the owner's goroutines use its words, and they go on.
func (p *PipeEnd) Memory(_ string, size int) (*mr.Memory, error) {
	if size > mostInMemory {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d at a node in memory", mr.ErrSize, size, mostInMemory)
	}
	m, err := mr.Alloc(size, mr.AllocOptions{Huge: mr.HugeNever}) // the system refuses what it does not have
	if err != nil || m.Kind() == mr.KindAdopted {
		return m, err
	}
	n := len(m.Bytes())
	if err := m.Close(); err != nil {
		return nil, err
	}
	return mr.Adopt(make([]byte, n)) // of whole pages, so it begins with one
}

// Nothing about a pipe ever changes.
func (p *PipeEnd) Watch(func(port.Event)) {}

// Follow implements Device.
func (p *PipeEnd) Follow(wire.Addr, wire.Link, func(wire.Link)) (stop func()) { return func() {} }

// Silent implements Device.
func (p *PipeEnd) Silent(netip.Addr) {}

// Counters implements Device.
func (p *PipeEnd) Counters() (map[string]uint64, error) { return map[string]uint64{}, nil }

// Disturb implements Disturbable.
func (p *PipeEnd) Disturb(f port.Faults) error {
	p.Port.SetFaults(f)
	return nil
}

// InMemory is the driver of a device that no interface is behind.
const InMemory = "memory"

// Label names the node in the texts of errors: by its interface, or by its address if it
// has none.
func (n *Node) Label() string {
	if i := n.Dev.Info(); i.Driver != InMemory {
		return i.Name
	}
	return n.Dev.Info().MAC
}

// Info implements Device.
func (p *PipeEnd) Info() InterfaceInfo {
	return InterfaceInfo{Name: "pipe", MAC: wire.Addr{MAC: p.Mac}.String(), MTU: PipeMTU, Driver: InMemory, Queues: 1}
}

// Link implements Device.
func (p *PipeEnd) Link(_ context.Context, a wire.Addr) (wire.Link, error) {
	if a.IsIP() {
		return wire.Link{}, errno.Refuse(errno.NotImplemented,
			"nodes in memory have no IP addresses: want the address that the other domain's Name returns, "+
				"such as %s", wire.Addr{MAC: pipeMAC(1)})
	}
	return wire.Link{Kind: wire.Ethernet, Local: p.Mac, Remote: a.MAC}, nil
}
