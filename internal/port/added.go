// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// checkAdded refuses an interface whose driver has added receive queues since it has an
// XDP program, if all queues were wanted. virtio-net adds one for each CPU where the
// device has so many more: they are for what XDP programs send, but the device puts
// packets into all of them, and on the added ones a socket cannot send.
func (i *Interface) checkAdded(bound int, o Options) error {
	if o.Queues != 0 {
		return nil // which frames arrive on them is the caller's concern
	}
	now, err := nic.Inspect(i.name)
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	return i.added(bound, now.RXQueues)
}

func (i *Interface) added(bound, now int) error {
	if now <= bound {
		return nil
	}
	return fmt.Errorf("port: %s: the driver %s has %d receive queues, but %d as soon as it has an XDP program, and frames"+
		" that arrive on the added ones would be lost: `ethtool -L %s combined N` with the maximum that `ethtool -l %s` shows,"+
		" so that there are none to add; or say how many queues to use, if frames for xdpfab arrive on those alone: %w",
		i.name, i.driver, bound, now, i.name, i.name, xsk.ErrNoQueue)
}
