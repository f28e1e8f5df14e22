// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/kernel"
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

// The range of MTUs that can be used, bytes. Up to OneBufferMTU a packet fits into one
// buffer, above it takes several.
const (
	MinMTU       = wire.MinMTU
	OneBufferMTU = largeChunk - headroom - ethernetOverhead
	MaxMTU       = maxSegments*largeChunk - ethernetOverhead
)

// maxSegments is how many chunks a packet takes at most. The kernel sends up to 18 as one
// packet (MAX_SKB_FRAGS and the head); those of one packet lie side by side, in a number
// that is a power of two.
const maxSegments = 16

// segmentRoom is how many bytes of a packet the smallest part of a chunk of largeChunk
// takes with zero-copy: from Linux 7 on what its headroom and struct skb_shared_info
// leave. segmentOverhead is what counts in addition to the MTU then (ETH_HLEN,
// ETH_FCS_LEN, two tags).
const (
	segmentRoom     = 3456
	segmentOverhead = 26
)

const coarseUnit = 1024 // bytes: the largest Limits.ZeroCopyUnit of any driver

// whole returns how many bytes of a chunk any driver can receive into with zero-copy.
func whole(chunk int) int { return (chunk - headroom) &^ (coarseUnit - 1) }

// MostMTU is the largest MTU at which the driver takes the program, for all that is
// known: that of packets in several buffers, if driver and kernel have them.
func (i *Interface) MostMTU() int {
	l := i.limits()
	switch {
	case !i.several:
		return i.oneBuffer()
	case l.FragsMTU != 0:
		return min(l.FragsMTU, MaxMTU)
	}
	return MaxMTU
}

// MostMTU is the largest MTU of the interface in the mode of the plan.
func (p *Plan) MostMTU() int { return p.of.MostMTU() }

// limits are those of the driver. It has a part in native mode alone: in generic mode the
// kernel calls the program, and divides the packets.
func (i *Interface) limits() Limits {
	if i.generic {
		return Limits{}
	}
	l, _ := LimitsOf(i.Driver)
	return l
}

// oneBuffer is the largest MTU at which a packet fits into one buffer, of the driver's
// and of ours.
func (i *Interface) oneBuffer() int {
	if l := i.limits(); l.MTU != 0 {
		return min(l.MTU, OneBufferMTU)
	}
	return OneBufferMTU
}

// Reopens returns nil if the interface is up, and has an MTU that can be used as planned,
// with the copy mode that was wanted, with what has changed since. With the maps of the
// program that is there, another one has to take packets in as many buffers: one, or
// several.
func (p *Plan) Reopens(name string, mtu int, up, maps bool) error {
	as := p.of
	as.Name, as.MTU, as.Up = name, mtu, up
	f, unfit := fit(&as, p.wanted)
	if unfit == nil && maps && (f.segments > 0) != (p.Segments > 0) {
		unfit = fmt.Errorf("%s: MTU %d, and %d at the start: the XDP program with resident regions takes packets in "+
			"one buffer or in several, and cannot change that: `ip link set dev %s mtu %d`, or stop the daemon and "+
			"start it: %w", name, mtu, p.of.MTU, name, p.of.MTU, ErrMTU)
	}
	return errors.Join(as.down(), unfit)
}

// fitting is what the packets of an interface need.
type fitting struct {
	chunk    int      // bytes
	segments int      // see Plan.Segments
	mode     xsk.Mode // to bind with
}

// fit chooses chunks that the longest packet of the interface fits into, however the
// driver divides them, one or several; and forgoes zero-copy where the chunks are not
// enough for it.
func fit(i *Interface, mode xsk.Mode) (f fitting, err error) {
	packet := i.MTU + ethernetOverhead
	limits := i.limits()
	f = fitting{chunk: largeChunk, mode: mode}
	switch {
	case i.MTU < MinMTU:
		return f, fmt.Errorf("%s: MTU %d is too small, want at least %d: ip link set dev %s mtu 1500: %w", i.Name,
			i.MTU, MinMTU, i.Name, ErrMTU)
	case i.MTU > i.oneBuffer() && i.MTU <= i.MostMTU():
		return f, f.fitSeveral(i)
	case i.MTU > OneBufferMTU:
		return f, i.tooLong()
	case mode == xsk.Copy || i.Driver == "veth": // the kernel copies, and never truncates
		if packet <= smallChunk-headroom {
			f.chunk = smallChunk
		}
	case packet <= whole(smallChunk):
		f.chunk = smallChunk
	case packet <= whole(largeChunk) || limits.ZeroCopyUnit == 0:
	case mode == xsk.ZeroCopy:
		return f, fmt.Errorf("%s: MTU %d is too large for zero-copy with the driver %s, which would cut packets off: "+
			"ip link set dev %s mtu %d, or do without zero-copy: %w", i.Name, i.MTU, i.Driver, i.Name,
			whole(largeChunk)-ethernetOverhead, ErrMTU)
	default:
		f.mode = xsk.Copy
	}
	return f, nil
}

// fitSeveral is fit for packets in several buffers.
func (f *fitting) fitSeveral(i *Interface) error {
	for f.segments = 1; f.segments*f.chunk < i.MTU+ethernetOverhead; f.segments *= 2 {
	}
	segments := max(i.ZeroCopySegments, 1)
	most := segments*segmentRoom - segmentOverhead
	switch {
	case i.MTU <= most:
	case f.mode == xsk.ZeroCopy:
		return fmt.Errorf("%s: MTU %d is too large for zero-copy with the driver %s, of which a packet may have %d "+
			"buffers: ip link set dev %s mtu %d, or do without zero-copy: %w", i.Name, i.MTU, i.Driver, segments,
			i.Name, most, ErrMTU)
	default:
		f.mode = xsk.Copy
	}
	return nil
}

// tooLong refuses an MTU above the largest one.
func (i *Interface) tooLong() error {
	why := "a packet has to fit into one buffer"
	switch {
	case i.several:
		why = "more than packets in several buffers carry"
	case i.features&XDPRXSG != 0:
		why += fmt.Sprintf(" before Linux %v", kernel.MultiBuffer)
	case i.FeaturesKnown:
		why += ", as the driver receives none in several"
	}
	return fmt.Errorf("%s: MTU %d is too large, %s: ip link set dev %s mtu %d: %w", i.Name, i.MTU, why, i.Name,
		i.MostMTU(), ErrMTU)
}
