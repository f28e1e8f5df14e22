// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// ErrNoInterface: there is no interface of that name in this network namespace.
var ErrNoInterface = errors.New("no such interface")

// The range of MTUs that package port can use, bytes: a packet has to fit into one
// buffer of 4096 bytes less the kernel's headroom.
const (
	MinMTU = wire.MinMTU
	MaxMTU = 4096 - 256 - 18
)

// Interface is what there is to know about one.
type Interface struct {
	Name      string   `json:"name"`
	Index     int      `json:"index"`
	Kind      string   `json:"kind"` // of the link: "veth", "device", …
	Driver    string   `json:"driver"`
	MTU       int      `json:"mtu"` // bytes
	MAC       string   `json:"mac"`
	Addresses []string `json:"addresses"`
	Up        bool     `json:"up"`
	Ethernet  bool     `json:"ethernet"` // has a MAC address, is not the loopback
	RXQueues  int      `json:"rx_queues"`
	TXQueues  int      `json:"tx_queues"`
	// FeaturesKnown is false before Linux 6.3; Features is then empty.
	FeaturesKnown bool      `json:"xdp_features_known"`
	Features      []string  `json:"xdp_features"`
	Attached      *Attached `json:"attached"` // nil when nothing is

	features XDPFeatures
}

// Attached is the XDP program that an interface has now.
type Attached struct {
	Mode string `json:"mode"` // "native", "generic", "offloaded" or "several"
	ID   uint32 `json:"id"`
	Name string `json:"name"` // empty if the caller may not know
}

// attachModes are the values of IFLA_XDP_ATTACHED.
var attachModes = map[uint32]string{1: "native", 2: "generic", 3: "offloaded", 4: "several"}

// List returns every interface of the caller's network namespace.
func List() ([]Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("nic: listing interfaces: %w", err)
	}
	all := make([]Interface, 0, len(links))
	for _, l := range links {
		all = append(all, describe(l))
	}
	return all, nil
}

// Inspect returns one interface by name; the error wraps ErrNoInterface if there
// is none.
func Inspect(name string) (Interface, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return Interface{}, fmt.Errorf("nic: %q: %w in this network namespace; `ip link` lists them", name, ErrNoInterface)
	}
	if err != nil {
		return Interface{}, fmt.Errorf("nic: looking up %q: %w", name, err)
	}
	return describe(l), nil
}

// describe asks everybody; what nobody knows stays empty.
func describe(l netlink.Link) Interface {
	a := l.Attrs()
	i := Interface{
		Name: a.Name, Index: a.Index, Kind: l.Type(), Driver: driver(a.Name), MTU: a.MTU, MAC: a.HardwareAddr.String(),
		Up: a.Flags&net.FlagUp != 0, Ethernet: a.Flags&net.FlagLoopback == 0 && len(a.HardwareAddr) == 6,
		RXQueues: max(a.NumRxQueues, 1), TXQueues: max(a.NumTxQueues, 1), Addresses: []string{}, Features: []string{},
	}
	addrs, _ := netlink.AddrList(l, netlink.FAMILY_ALL)
	for _, a := range addrs {
		i.Addresses = append(i.Addresses, a.IPNet.String())
	}
	if rx, tx, err := channels(a.Index); err == nil && rx > 0 {
		i.RXQueues, i.TXQueues = rx, tx
	}
	if f, err := xdpFeatures(a.Index); err == nil {
		i.SetFeatures(f)
	}
	if x := a.Xdp; x != nil && x.Attached {
		i.Attached = &Attached{Mode: attachModes[x.AttachMode], ID: x.ProgId, Name: programName(x.ProgId)}
	}
	return i
}

// driver asks by ioctl, as sysfs shows the namespace that it was mounted in.
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

// programName takes CAP_SYS_ADMIN; without it the name stays unknown.
func programName(id uint32) string {
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// Plan is how xdpfab would use an interface.
type Plan struct {
	Usable   bool     `json:"usable"`
	XDP      string   `json:"xdp"`      // "native", "generic" or "unknown"
	Copy     string   `json:"copy"`     // "zero-copy", "copy" or "unknown"
	Queues   int      `json:"queues"`   // that would be opened
	Problems []string `json:"problems"` // each with its remedy; empty if usable
	Notes    []string `json:"notes"`
}

// Plan decides from the description alone what opening the interface would do.
func (i *Interface) Plan() Plan {
	p := Plan{XDP: "unknown", Copy: "unknown", Queues: i.RXQueues, Problems: []string{}, Notes: []string{}}
	problem := func(format string, args ...any) { p.Problems = append(p.Problems, fmt.Sprintf(format, args...)) }
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case !i.Ethernet:
		problem("not an Ethernet interface")
	case !i.Up:
		problem("interface is down: ip link set dev %s up", i.Name)
	}
	if i.MTU < MinMTU || i.MTU > MaxMTU {
		problem("MTU %d: want %d to %d: ip link set dev %s mtu 1500", i.MTU, MinMTU, MaxMTU, i.Name)
	}
	if i.TXQueues < i.RXQueues {
		problem("%d receive queues and %d transmit queues: want as many of both: ethtool -L %s rx %d tx %d",
			i.RXQueues, i.TXQueues, i.Name, i.TXQueues, i.TXQueues)
	}
	if a := i.Attached; a != nil {
		problem("XDP program %d %s is attached (%s); one process at a time can have the interface", a.ID, a.Name, a.Mode)
	}
	switch {
	case !i.FeaturesKnown:
		note("the driver's XDP is only known when the program is attached (kernel < 6.3)")
	case i.features&XDPBasic == 0 || i.features&XDPRedirect == 0:
		p.XDP, p.Copy = "generic", "copy"
		note("no native XDP in the driver: works with --generic only, several times slower")
	default:
		p.XDP, p.Copy = "native", "copy"
		if i.features&XDPZeroCopy != 0 {
			p.Copy = "zero-copy"
			note("the driver offers zero-copy, but not for every device (virtio-net: only with iommu_platform=on); " +
				"what a queue really gets is only known when it is bound")
		}
	}
	p.Usable = len(p.Problems) == 0
	return p
}

// SetFeatures says what the driver offers, for an Interface that no kernel described.
func (i *Interface) SetFeatures(f XDPFeatures) {
	i.FeaturesKnown, i.features, i.Features = true, f, f.Names()
}
