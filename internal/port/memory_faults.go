// SPDX-License-Identifier: Apache-2.0

package port

import (
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Faults are what a [Memory] port does to the packets sent through it, with
// probabilities from 0 to 1.
type Faults struct {
	Loss      float64 // dropped
	Duplicate float64 // delivered twice
	Reorder   float64 // delivered ahead of up to 8 packets sent before
	Corrupt   float64 // one bit flipped

	Delay time.Duration // for all
}

// Check refuses what no packet can meet.
func (f Faults) Check() error {
	for i, p := range [...]float64{f.Loss, f.Duplicate, f.Reorder, f.Corrupt} {
		if !(p >= 0 && p <= 1) { // written so that NaN is refused
			return fmt.Errorf("%s of %v: want a probability, 0 to 1",
				[...]string{"Faults.Loss", "Faults.Duplicate", "Faults.Reorder", "Faults.Corrupt"}[i], p)
		}
	}
	if f.Delay < 0 {
		return fmt.Errorf("%s of %v: want 0 or more", "Faults.Delay", f.Delay)
	}
	return nil
}

// with returns the faults of a packet that meets both, one after the other.
func (f Faults) with(g Faults) Faults {
	either := func(a, b float64) float64 { return 1 - (1-a)*(1-b) }
	return Faults{Loss: either(f.Loss, g.Loss), Duplicate: either(f.Duplicate, g.Duplicate),
		Reorder: either(f.Reorder, g.Reorder), Corrupt: either(f.Corrupt, g.Corrupt), Delay: f.Delay + g.Delay}
}

// SetFaults changes what happens to packets sent from now on. Any goroutine may call it,
// as those that follow.
func (m *Memory) SetFaults(f Faults) {
	m.mu.Lock()
	m.faults = f
	m.mu.Unlock()
}

// NewMemorySwitch returns the ports of a switch of the given MTU, one for each address.
// Packets for other addresses are dropped.
func NewMemorySwitch(mtu int, seed uint64, addresses []wire.MAC) []*Memory {
	list, ports := make([]*Memory, len(addresses)), make(map[wire.MAC]*Memory, len(addresses))
	for i, mac := range addresses {
		list[i] = newMemory(mtu, seed+uint64(i))
		ports[mac] = list[i]
	}
	for _, m := range list {
		m.ports, m.links, m.cut = ports, map[*Memory]Faults{}, map[*Memory]bool{}
	}
	return list
}

// SetFaultsTo changes what happens to packets sent from now on to a port of the same
// switch, besides what happens to all.
func (m *Memory) SetFaultsTo(to *Memory, f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links[to] = f
}

// Cut drops all packets that are sent to a port of the same switch from now on, or none.
func (m *Memory) Cut(to *Memory, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut[to] = cut
}

// Unplug takes the cable off the port: from now on nothing is sent or received, and what
// has been received is lost.
func (m *Memory) Unplug() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unplugged = true
	m.free, m.queue = append(m.free, m.queue...), nil
}

// Plug undoes Unplug.
func (m *Memory) Plug() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unplugged = false
}
