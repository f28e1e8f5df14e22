// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// ErrMTU is what the refusal of an interface's MTU wraps.
var ErrMTU = errors.New("unsuitable MTU")

// nic is what there is to know about an interface before it is used.
type nic struct {
	name   string
	index  int
	mac    wire.MAC
	mtu    int // bytes
	driver string
	queues int // in use, receiving and sending alike
	chunk  int // bytes of a packet buffer
}

// inspect looks an interface of the calling thread's network namespace up and
// checks that it can be used at all.
func inspect(ifname string) (nic, error) {
	n := nic{name: ifname}
	if err := supported(); err != nil {
		return n, err
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return n, fmt.Errorf("port: opening rtnetlink: %w", err)
	}
	defer h.Close()
	link, err := h.LinkByName(ifname)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return n, fmt.Errorf("port: %q: %w in this network namespace; `ip link` lists them", ifname, xsk.ErrNoInterface)
	}
	if err != nil {
		return n, fmt.Errorf("port: looking up interface %q: %w", ifname, err)
	}
	a := link.Attrs()
	switch {
	case a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) != len(n.mac):
		return n, fmt.Errorf("port: %s is not an Ethernet interface (%s): want one with a MAC address", ifname, a.EncapType)
	case a.Flags&net.FlagUp == 0:
		return n, fmt.Errorf("port: %s: %w: ip link set dev %s up: %w", ifname, xsk.ErrInterfaceDown, ifname, unix.ENETDOWN)
	}
	// An alternative name finds the interface too; everything below wants the real one.
	n.name, n.index, n.mac, n.mtu = a.Name, a.Index, wire.MAC(a.HardwareAddr), a.MTU
	return n, n.ethtool(a.NumRxQueues, a.NumTxQueues)
}

// ethtool asks the driver for its name and its queues; rx and tx are how many
// the device was made with, for drivers that do not tell how many are in use.
// An ioctl, as sysfs shows the namespace that it was mounted in and not ours.
func (n *nic) ethtool(rx, tx int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("port: opening a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	n.driver = "unknown"
	if info, err := unix.IoctlGetEthtoolDrvinfo(fd, n.name); err == nil {
		n.driver = unix.ByteSliceToString(info.Driver[:])
	}
	if c, err := channelsOf(fd, n.name); err == nil {
		rx, tx = int(c.combined+c.rx), int(c.combined+c.tx)
	}
	n.queues = max(rx, 1)
	if tx < rx {
		return fmt.Errorf("port: %s has %d receive queues and %d transmit queues; want as many of both: `ethtool -L %s rx %d tx %d`",
			n.name, rx, tx, n.name, tx, tx)
	}
	return nil
}

// use is how many queues to open.
func (n *nic) use(want int) (int, error) {
	switch {
	case want > n.queues:
		return 0, fmt.Errorf("port: %s has %d queues, %d were asked for; see `ethtool -l %s`: %w",
			n.name, n.queues, want, n.name, xsk.ErrNoQueue)
	case want == 0:
		want = n.queues
	}
	if want > maxQueues {
		return 0, fmt.Errorf("port: %s has %d queues, at most %d can be used: ethtool -L %s combined %d: %w",
			n.name, n.queues, maxQueues, n.name, maxQueues, xsk.ErrNoQueue)
	}
	return want, nil
}
