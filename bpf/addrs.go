// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// address is an IP address as the program looks it up: 16 bytes in network order,
// IPv4 as ::ffff:a.b.c.d.
type address [16]byte

// SetAddrs makes these the node's own addresses, at most MaxAddrs, from this moment
// on: UDP packets to others pass (PassAddr). An address that stays is served without
// a gap. With none, no UDP packet is accepted. Without Config.UDP it is an error.
func (p *Program) SetAddrs(addrs []netip.Addr) error {
	want, err := keys(addrs)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case !p.udp:
		return fmt.Errorf("bpf: %w: addresses for a program that takes no UDP; set Config.UDP", ErrConfig)
	}
	// Removing old addresses first makes room for new ones.
	for a := range p.addrs {
		if _, stays := want[a]; stays {
			continue
		}
		if err := p.objects.Served.Delete(a); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return explain(fmt.Sprintf("removing address %v", netip.AddrFrom16(a).Unmap()), err)
		}
		delete(p.addrs, a)
	}
	for a := range want {
		if _, there := p.addrs[a]; there {
			continue
		}
		if err := p.objects.Served.Put(a, uint8(1)); err != nil {
			return explain(fmt.Sprintf("adding address %v", netip.AddrFrom16(a).Unmap()), err)
		}
		p.addrs[a] = struct{}{}
	}
	return nil
}

// keys checks addresses and lays them out as steer.c expects them.
func keys(addrs []netip.Addr) (map[address]struct{}, error) {
	want := make(map[address]struct{}, len(addrs))
	for _, a := range addrs {
		a = a.Unmap()
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			return nil, fmt.Errorf("bpf: %w: %v is not a unicast address of this node", ErrConfig, a)
		}
		want[a.As16()] = struct{}{}
	}
	if len(want) > MaxAddrs {
		return nil, fmt.Errorf("bpf: %w: %d addresses, want at most %d; remove some from the interface", ErrConfig,
			len(want), MaxAddrs)
	}
	return want, nil
}
