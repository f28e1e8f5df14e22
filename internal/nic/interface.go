// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/dump"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/xsk"
)

// Interface describes a network interface.
type Interface struct {
	Name      string   `json:"name"`
	Index     int      `json:"index"`
	Kind      string   `json:"kind"` // of the link: "veth", "device", …
	Driver    string   `json:"driver"`
	MTU       int      `json:"mtu"` // bytes
	MAC       string   `json:"mac"`
	Addresses []string `json:"addresses"`
	// Served are the addresses at which UDP is accepted: its own, and those of interfaces
	// above it whose packets come to it.
	Served []string `json:"served"`
	Above  []Above  `json:"above,omitempty"`
	Below  []Below  `json:"below,omitempty"`
	// VLANs are the 802.1Q interfaces on top of it, whose frames are not its own.
	VLANs []string `json:"vlans,omitempty"`
	// TagsOff is whether the NIC takes 802.1Q tags off, so that no program sees them.
	TagsOff  bool `json:"tags_off"`
	Up       bool `json:"up"`
	Ethernet bool `json:"ethernet"` // has a MAC address, is not the loopback
	RXQueues int  `json:"rx_queues"`
	TXQueues int  `json:"tx_queues"`
	// FeaturesKnown is false before Linux 6.3; Features is then empty.
	FeaturesKnown bool     `json:"xdp_features_known"`
	Features      []string `json:"xdp_features"`
	// ZeroCopySegments is how many buffers a packet may have with zero-copy; 0 if the
	// driver has no zero-copy, or the kernel does not tell (before 6.6).
	ZeroCopySegments int       `json:"zero_copy_segments"`
	Attached         *Attached `json:"attached"` // nil when no program is attached

	HardwareAddr net.HardwareAddr `json:"-"` // MAC, in binary

	features XDPFeatures
	offloads map[string]bool // with true for those in force
	channels channelling
	several  bool // driver and kernel have packets in several buffers
	generic  bool // the program is not the driver's to call
	copies   bool // the driver offers zero-copy, and this device cannot have it

	vlans       map[uint16]string // those of VLANs, by id
	filtersTags bool              // frames of VLANs without an interface may not come in
}

// Attached is the XDP program that an interface has now.
type Attached struct {
	Mode string `json:"mode"` // "native", "generic", "offloaded" or "several"
	ID   uint32 `json:"id"`
	Name string `json:"name"` // empty if the caller lacks the privilege to know

	holder *bpf.BusyError // nil if it is not in the way
}

// attachModes are the values of IFLA_XDP_ATTACHED.
var attachModes = map[uint32]string{1: "native", 2: "generic", 3: "offloaded", 4: "several"}

// List returns every interface of the caller's network namespace.
func List() ([]Interface, error) {
	links, err := dump.Whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	all := make([]Interface, 0, len(links))
	for _, l := range links {
		all = append(all, describe(l, links))
	}
	return all, nil
}

// names are those of all interfaces.
func names() (all []string) {
	links, _ := net.Interfaces()
	for _, l := range links {
		all = append(all, l.Name)
	}
	return all
}

// Inspect returns one interface by name; the error wraps
// xsk.ErrNoInterface if there is none.
func Inspect(name string) (Interface, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return Interface{}, fmt.Errorf("%q: %w in this network namespace%s; `ip link` lists them", name,
			xsk.ErrNoInterface, errno.DidYouMean(name, names()))
	}
	if err != nil {
		return Interface{}, fmt.Errorf("looking up %q: %w", name, err)
	}
	all, _ := dump.Whole(netlink.LinkList) // what is above and below is best effort
	return describe(l, all), nil
}

// describe asks all sources; fields that none of them knows stay empty.
func describe(l netlink.Link, all []netlink.Link) Interface {
	a := l.Attrs()
	i := Interface{
		Name: a.Name, Index: a.Index, Kind: l.Type(), Driver: driver(a.Name), MTU: a.MTU,
		MAC: a.HardwareAddr.String(), HardwareAddr: a.HardwareAddr,
		Up: a.Flags&net.FlagUp != 0, Ethernet: a.Flags&net.FlagLoopback == 0 && len(a.HardwareAddr) == 6,
		RXQueues: max(a.NumRxQueues, 1), TXQueues: max(a.NumTxQueues, 1), Addresses: []string{}, Features: []string{},
	}
	i.Addresses = append(i.Addresses, addressesOf(a.Index)...)
	if rx, tx, err := channels(a.Index); err == nil && rx > 0 {
		i.RXQueues, i.TXQueues = rx, tx
	}
	i.offloads, _ = offloads(a.Index)
	i.stack(l, all)
	i.tags(all)
	i.channels = channelsOf(i.Index)
	if f, segments, err := xdpFeatures(a.Index); err == nil {
		i.SetFeatures(f)
		i.ZeroCopySegments = segments
	}
	if i.Driver == "virtio_net" {
		card, _ := CardOf(i.Name)
		i.copies = virtioCopies(pciDevices, card.Bus)
	}
	if x := a.Xdp; x != nil && x.Attached {
		i.Attached = attached(l, x)
	}
	return i
}

// attached describes the program that is attached to a link.
func attached(l netlink.Link, x *netlink.LinkXdp) *Attached {
	a := &Attached{Mode: attachModes[x.AttachMode], ID: x.ProgId}
	if h, err := bpf.Holder(l.Attrs().Name, l.Attrs().Index); err == nil && h != nil {
		a.ID, a.Name, a.holder = h.ProgramID, h.Name, h
	}
	return a
}

// driver asks by ioctl, because sysfs shows the namespace that it was mounted
// in.
func driver(name string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "unknown"
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return "none"
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// SetFeatures sets the driver's features, for an Interface that did not come from the
// kernel.
func (i *Interface) SetFeatures(f XDPFeatures) {
	i.FeaturesKnown, i.features, i.Features = true, f, f.Names()
	// In generic mode the kernel divides the packets, whatever the driver is.
	i.several = (f&XDPRXSG != 0 || f&XDPBasic == 0) && !kernel.Before(kernel.MultiBuffer)
}
