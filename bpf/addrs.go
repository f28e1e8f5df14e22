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
	return renew(p.objects.Served, p.addrs, want, "address", func(a address) any { return netip.AddrFrom16(a).Unmap() })
}

// renew makes a map of the program, which has some keys, have those that are wanted.
// Those that stay are there throughout; removing the others first makes room.
func renew[K comparable](m *ebpf.Map, has, want map[K]struct{}, kind string, show func(K) any) error {
	for k := range has {
		if _, stays := want[k]; stays {
			continue
		}
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return explain(fmt.Sprintf("removing %s %v", kind, show(k)), err)
		}
		delete(has, k)
	}
	for k := range want {
		if _, there := has[k]; there {
			continue
		}
		if err := m.Put(k, uint8(1)); err != nil {
			return explain(fmt.Sprintf("adding %s %v", kind, show(k)), err)
		}
		has[k] = struct{}{}
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
