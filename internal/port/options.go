// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// Options are how to use an interface. The zero value is good.
type Options struct {
	// Queues is how many queues to use, from queue 0 on; 0 means all. Frames that
	// the NIC puts into another queue are dropped.
	Queues int
	// Copy is the AF_XDP mode. Auto: zero-copy if the driver can.
	Copy xsk.Mode
	// Generic allows generic XDP, several times slower, where the driver has no
	// native XDP.
	Generic bool
	// UDP takes frames over UDP to the interface's present addresses as well.
	UDP bool
	// RingSize is the number of entries of each ring, a power of two; 0: 2048.
	RingSize int
	// Chunks is the number of packet buffers of each queue, half of them to
	// receive into and half to send from: at most, and by default, twice RingSize.
	Chunks int
	// BusyPoll is for NICs; see xsk.BusyPoll. Open refuses it on veth.
	BusyPoll xsk.BusyPoll
}

const (
	maxRingSize  = 1 << 16
	minChunks    = 64 // half of it is a useful burst
	maxQueues    = wire.MaxQueues
	lane         = 0 // of the sockets that this package opens
	smallChunk   = 2048
	largeChunk   = 4096
	rxHeadroom   = 256 // kept free by the kernel before a received packet (XDP_PACKET_HEADROOM)
	skbOverhead  = 1024
	maxSendBytes = 1 << 30
)

// complete checks the options and puts the defaults in.
func (o *Options) complete() error {
	if o.RingSize == 0 {
		o.RingSize = xsk.DefaultRingSize
	}
	if o.RingSize < minChunks/2 || o.RingSize > maxRingSize || bits.OnesCount(uint(o.RingSize)) != 1 {
		return fmt.Errorf("port: ring size %d: want a power of two from %d to %d", o.RingSize, minChunks/2, maxRingSize)
	}
	if o.Chunks == 0 {
		o.Chunks = 2 * o.RingSize
	}
	switch {
	case o.Chunks < minChunks || o.Chunks > 2*o.RingSize:
		return fmt.Errorf("port: %d chunks for rings of %d entries: want %d to %d", o.Chunks, o.RingSize, minChunks, 2*o.RingSize)
	case o.Queues < 0:
		return fmt.Errorf("port: %d queues: want 0 for all, or more", o.Queues)
	}
	return nil
}

// coarse are the drivers that with zero-copy set their receive buffers up in whole
// coarseUnits, and cut longer packets off: what is left of a chunk is rounded down.
var coarse = []string{"igb", "igc", "ixgbe"}

const coarseUnit = 1024 // bytes

// whole is how much of a chunk any driver can receive into with zero-copy, in bytes.
func whole(chunk int) int { return (chunk - rxHeadroom) &^ (coarseUnit - 1) }

// fit chooses chunks that the longest packet of the interface fits into, whatever the
// driver makes of them, and forgoes zero-copy where none is large enough for it.
func (n *nic) fit(o *Options) error {
	packet, most := n.mtu+ethernetOverhead, largeChunk-rxHeadroom
	switch {
	case n.mtu < wire.MinMTU:
		return fmt.Errorf("port: %s: MTU %d is too small, want at least %d: ip link set dev %s mtu %d: %w",
			n.name, n.mtu, wire.MinMTU, n.name, 1500, ErrMTU)
	case packet > most:
		return fmt.Errorf("port: %s: MTU %d is too large, a packet has to fit into one buffer: ip link set dev %s mtu %d "+
			"(the driver may want less; veth: 3498): %w", n.name, n.mtu, n.name, most-ethernetOverhead, ErrMTU)
	}
	n.chunk = largeChunk
	if o.Copy == xsk.Copy || n.driver == "veth" { // the kernel copies, and never cuts
		if packet <= smallChunk-rxHeadroom {
			n.chunk = smallChunk
		}
		return nil
	}
	if packet <= whole(smallChunk) {
		n.chunk = smallChunk
	}
	if packet > whole(largeChunk) && slices.Contains(coarse, n.driver) {
		if o.Copy == xsk.ZeroCopy {
			return fmt.Errorf("port: %s: MTU %d is too large for zero-copy with the driver %s, which would cut packets off: ip link set dev %s mtu %d, or leave zero-copy: %w",
				n.name, n.mtu, n.driver, n.name, whole(largeChunk)-ethernetOverhead, ErrMTU)
		}
		o.Copy = xsk.Copy
	}
	return nil
}
