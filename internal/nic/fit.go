// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// ErrMTU is what the refusal of an interface's MTU wraps.
var ErrMTU = errors.New("unsuitable MTU")

const (
	smallChunk       = 2048
	largeChunk       = 4096
	headroom         = 256 // kept free by the kernel before a received packet (XDP_PACKET_HEADROOM)
	ethernetOverhead = 18  // the Ethernet header with one VLAN tag
)

// The range of MTUs that can be used, bytes: a packet has to fit into one buffer.
const (
	MinMTU = wire.MinMTU
	MaxMTU = largeChunk - headroom - ethernetOverhead
)

// coarse are the drivers that with zero-copy round the size of their receive
// buffers down to whole coarseUnits, and truncate longer packets.
var coarse = []string{"igb", "igc", "ixgbe"}

const coarseUnit = 1024 // bytes

// whole returns how many bytes of a chunk any driver can receive into with
// zero-copy.
func whole(chunk int) int { return (chunk - headroom) &^ (coarseUnit - 1) }

// Ready returns nil if the interface is up, and has an MTU that can be used.
func (i *Interface) Ready() error {
	_, _, unfit := fit(i, xsk.Auto)
	return errors.Join(i.down(), unfit)
}

// fit chooses chunks that the longest packet of the interface fits into, however the
// driver divides them, and forgoes zero-copy where no chunk is large enough for it.
func fit(i *Interface, mode xsk.Mode) (chunk int, bind xsk.Mode, err error) {
	packet := i.MTU + ethernetOverhead
	switch {
	case i.MTU < MinMTU:
		err = fmt.Errorf("%s: MTU %d is too small, want at least %d: ip link set dev %s mtu 1500: %w", i.Name, i.MTU,
			MinMTU, i.Name, ErrMTU)
	case i.MTU > MaxMTU:
		err = fmt.Errorf("%s: MTU %d is too large, a packet has to fit into one buffer: ip link set dev %s mtu %d "+
			"(the driver may want less; veth: 3498): %w", i.Name, i.MTU, i.Name, MaxMTU, ErrMTU)
	case mode == xsk.Copy || i.Driver == "veth": // the kernel copies, and never truncates
		if packet <= smallChunk-headroom {
			return smallChunk, mode, nil
		}
	case packet <= whole(smallChunk):
		return smallChunk, mode, nil
	case packet <= whole(largeChunk) || !slices.Contains(coarse, i.Driver):
	case mode == xsk.ZeroCopy:
		err = fmt.Errorf("%s: MTU %d is too large for zero-copy with the driver %s, which would cut packets off: "+
			"ip link set dev %s mtu %d, or leave zero-copy: %w", i.Name, i.MTU, i.Driver, i.Name,
			whole(largeChunk)-ethernetOverhead, ErrMTU)
	default:
		mode = xsk.Copy
	}
	return largeChunk, mode, err
}
