// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// cause explains an errno of one system call.
type cause struct {
	errno  unix.Errno
	is     error  // sentinel
	remedy string // what to do about it
}

// socketCauses are those of socket(2).
var socketCauses = []cause{
	{unix.EPERM, ErrPermission, "grant CAP_NET_RAW (run as root, or setcap cap_net_raw+ep)"},
	{unix.EAFNOSUPPORT, ErrUnsupported, "AF_XDP takes Linux 5.4 with CONFIG_XDP_SOCKETS"},
}

// bindCauses are those of bind(2), from xsk_bind, xp_assign_dev and the drivers.
var bindCauses = []cause{
	{unix.ENODEV, ErrNoInterface,
		"the index must name an interface in the network namespace of the thread that opens the socket"},
	{unix.EINVAL, ErrNoQueue, "see `ethtool -l` for the queues; with zero-copy, a driver may also refuse these ring " +
		"or chunk sizes; sharing across queues takes Linux 5.10"},
	{unix.EBUSY, ErrQueueBusy, "close that one, share it by Config.Shared, or use another queue"},
	{unix.EOPNOTSUPP, ErrZeroCopy, "the driver cannot; want the copy mode auto or copy"},
	{unix.ENETDOWN, ErrInterfaceDown, "bring it up with `ip link set IF up`"},
	{unix.EPERM, ErrPermission, "grant CAP_NET_RAW"},
	{unix.ENOTSOCK, ErrClosed, "the Shared socket must stay open"},
}

// zeroCopyCauses are those where copy mode would do.
var zeroCopyCauses = []cause{
	{unix.EINVAL, ErrZeroCopy, "the driver refuses it for this device or these ring and chunk sizes " +
		"(virtio-net: the hypervisor has to give the device iommu_platform=on); want the copy mode auto or copy"}}

// explain wraps an errno with its sentinel and its remedy, and nil in nil.
func explain(what string, err error, causes []cause) error {
	if err == nil {
		return nil
	}
	for _, c := range causes {
		if errors.Is(err, c.errno) {
			return fmt.Errorf("xsk: %s: %w: %w; %s", what, c.is, err, c.remedy)
		}
	}
	return fmt.Errorf("xsk: %s: %w", what, err)
}

func socketError(err error) error { return explain("creating an AF_XDP socket", err, socketCauses) }

func bindError(err error, cfg *Config) error {
	if cfg.MultiBuffer && errors.Is(err, unix.EINVAL) && kernel.Before(kernel.MultiBuffer) {
		return fmt.Errorf("xsk: MultiBuffer: %w: %w; it takes Linux 6.6", ErrUnsupported, err)
	}
	return explain(fmt.Sprintf("binding to queue %d of interface %d", cfg.Queue, cfg.IfIndex), err, bindCauses)
}

func busyPollError(name string, err error) error {
	return explain(name, err, []cause{
		{unix.EPERM, ErrPermission, "grant CAP_NET_ADMIN"},
		{unix.ENOPROTOOPT, ErrUnsupported, "busy polling takes Linux 5.11"},
	})
}
