// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"maps"

	"github.com/xdpfab/xdpfab/internal/node"
)

// An Address has the index of an entry of the address vector in its low bits, and above
// them the number of a receive context of a scalable endpoint.
const (
	entryBits = 25
	// MaxContexts is the most transmit contexts, and the most receive contexts, of a
	// scalable endpoint.
	MaxContexts = node.MaxBlock

	maxEntries = 1<<entryBits - 1 // the last one is part of NoAddress
)

// RXAddress returns the address of a receive context of the scalable endpoint at a, where
// the first one is 0 (fi_rx_addr, FI_NAMED_RX_CTX). An address with another context, or a
// number that no context can have, is refused.
func RXAddress(a Address, context int) (Address, error) {
	if context < 0 || context >= MaxContexts {
		return NoAddress, fmt.Errorf("xdpfab: receive context %d: want 0..%d: %w", context, MaxContexts-1,
			ErrUnknownPeer)
	}
	if a.context() != 0 {
		return NoAddress,
			fmt.Errorf("xdpfab: address %#x is that of receive context %d: want that of the scalable endpoint: %w",
				uint32(a), a.context(), ErrUnknownPeer)
	}
	return a | Address(context)<<entryBits, nil
}

// entry returns the index in the address vector, and context the receive context.
func (a Address) entry() int   { return int(a & (1<<entryBits - 1)) }
func (a Address) context() int { return int(a >> entryBits) }

// contextPeer returns the peer of a receive context's address, if it has been used.
func (ep *endpoint) contextPeer(a Address) (known, bool) {
	if peers := ep.contextPeers.Load(); peers != nil {
		k, is := (*peers)[a]
		return k, is
	}
	return known{}, false
}

// setContextPeer notes the peer of a receive context's address. ep.mu is held.
func (ep *endpoint) setContextPeer(a Address, k known) {
	peers := map[Address]known{}
	if old := ep.contextPeers.Load(); old != nil {
		peers = maps.Clone(*old)
	}
	peers[a] = k
	ep.contextPeers.Store(&peers)
}

// dropContextPeers drops the names of all receive contexts at an entry of the address
// vector. ep.mu is held.
func (ep *endpoint) dropContextPeers(entry int) {
	old := ep.contextPeers.Load()
	if old == nil {
		return
	}
	peers := maps.Clone(*old)
	maps.DeleteFunc(peers, func(a Address, _ known) bool { return a.entry() == entry })
	ep.contextPeers.Store(&peers)
	for a, k := range *old {
		if a.entry() == entry {
			ep.drop(k.name)
		}
	}
}

// full returns an error if no entry is left. av.mu is held.
func (av *AddressVector) full() error {
	if len(av.entries) < maxEntries {
		return nil
	}
	return fmt.Errorf(
		"xdpfab: address vector: all %d entries are in use, and none is used again: make another vector: %w",
		maxEntries, ErrTooMany)
}
