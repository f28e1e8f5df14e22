// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"

	"github.com/xdpfab/xdpfab/xsk"
)

func TestAddedQueues(t *testing.T) {
	i := &Interface{name: "eth0", driver: "virtio_net"}
	refused(t, i.added(2, 4), xsk.ErrNoQueue, "has 2 receive queues, but 4", "ethtool -L eth0 combined N")
	for _, now := range []int{1, 2} {
		if err := i.added(2, now); err != nil {
			t.Errorf("%d queues of 2: %v", now, err)
		}
	}
}
