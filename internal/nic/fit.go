// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"

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

const coarseUnit = 1024 // bytes: the largest Limits.ZeroCopyUnit of any driver

// whole returns how many bytes of a chunk any driver can receive into with
// zero-copy.
func whole(chunk int) int { return (chunk - headroom) &^ (coarseUnit - 1) }

// MostMTU is the largest MTU at which the driver takes the program and a packet fits into
// one buffer, for all that is known.
func (i *Interface) MostMTU() int {
	if l, _ := LimitsOf(i.Driver); l.MTU != 0 {
		return min(l.MTU, MaxMTU)
	}
	return MaxMTU
}

// Ready returns nil if the interface is up, and has an MTU that can be used.
func (i *Interface) Ready() error {
	_, _, unfit := fit(i, xsk.Auto)
	return errors.Join(i.down(), unfit)
}

// fit chooses chunks that the longest packet of the interface fits into, however the
// driver divides them, and forgoes zero-copy where no chunk is large enough for it.
func fit(i *Interface, mode xsk.Mode) (chunk int, bind xsk.Mode, err error) {
	packet := i.MTU + ethernetOverhead
	limits, _ := LimitsOf(i.Driver)
	switch {
	case i.MTU < MinMTU:
		err = fmt.Errorf("%s: MTU %d is too small, want at least %d: ip link set dev %s mtu 1500: %w", i.Name, i.MTU,
			MinMTU, i.Name, ErrMTU)
	case i.MTU > MaxMTU:
		err = fmt.Errorf("%s: MTU %d is too large, a packet has to fit into one buffer: ip link set dev %s mtu %d: %w",
			i.Name, i.MTU, i.Name, i.MostMTU(), ErrMTU)
	case mode == xsk.Copy || i.Driver == "veth": // the kernel copies, and never truncates
		if packet <= smallChunk-headroom {
			return smallChunk, mode, nil
		}
	case packet <= whole(smallChunk):
		return smallChunk, mode, nil
	case packet <= whole(largeChunk) || limits.ZeroCopyUnit == 0:
	case mode == xsk.ZeroCopy:
		err = fmt.Errorf("%s: MTU %d is too large for zero-copy with the driver %s, which would cut packets off: "+
			"ip link set dev %s mtu %d, or leave zero-copy: %w", i.Name, i.MTU, i.Driver, i.Name,
			whole(largeChunk)-ethernetOverhead, ErrMTU)
	default:
		mode = xsk.Copy
	}
	return largeChunk, mode, err
}
