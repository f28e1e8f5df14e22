// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// checkAdded returns how many receive queues there are now. It refuses an interface whose
// driver added some when it got an XDP program, if the caller did not say which to use.
// virtio-net adds one for each CPU if the device has enough: they are for packets that
// XDP programs send, but the device receives into all of them, and a socket cannot send
// on the added ones.
func (i *Interface) checkAdded(o Options) (all int, err error) {
	now, err := nic.Inspect(i.name)
	if err != nil {
		return 0, err
	}
	if o.Queues == 0 && i.bound < bpf.MaxReceiveQueues {
		err = i.added(i.bound, now.RXQueues)
	}
	return now.RXQueues, err
}

func (i *Interface) added(bound, now int) error {
	if now <= bound {
		return nil
	}
	return fmt.Errorf(
		"%s: the driver %s has %d receive queues, but %d as soon as it has an XDP program, and frames"+
			" that arrive on the added ones would be lost: `ethtool -L %s combined N` with the maximum that `ethtool "+
			"-l "+
			"%s` shows,"+
			" so that there are none to add; or say how many queues to use, if frames for xdpfab arrive on those "+
			"alone: %w",
		i.name, i.driver, bound, now, i.name, i.name, xsk.ErrNoQueue)
}
