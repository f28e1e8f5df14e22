// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// checkAdded refuses an interface whose driver added receive queues when it got an XDP
// program, if all queues were wanted. virtio-net adds one for each CPU if the device has
// enough: they are for packets that XDP programs send, but the device receives into all
// of them, and a socket cannot send on the added ones.
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
	return fmt.Errorf(
		"port: %s: the driver %s has %d receive queues, but %d as soon as it has an XDP program, and frames"+
			" that arrive on the added ones would be lost: `ethtool -L %s combined N` with the maximum that `ethtool "+
			"-l "+
			"%s` shows,"+
			" so that there are none to add; or say how many queues to use, if frames for xdpfab arrive on those "+
			"alone: %w",
		i.name, i.driver, bound, now, i.name, i.name, xsk.ErrNoQueue)
}
