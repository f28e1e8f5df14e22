// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xsk"
)

// Every packet of an interface's MTU fits into the driver's receive buffers.
func TestFit(t *testing.T) {
	const auto, copied, zero = xsk.Auto, xsk.Copy, xsk.ZeroCopy
	for _, c := range []struct {
		driver string
		mtu    int
		mode   xsk.Mode
		chunk  int // 0: refused
		as     xsk.Mode
	}{
		{"igb", 1006, auto, 2048, auto}, {"igb", 1007, auto, 4096, auto}, {"igb", 1500, auto, 4096, auto},
		{"igb", 1500, copied, 2048, copied}, {"igb", 1774, copied, 2048, copied}, {"igb", 1775, copied, 4096, copied},
		{"igb", 3054, auto, 4096, auto}, {"igb", 3055, auto, 4096, copied}, {"igb", 3055, zero, 0, zero},
		{"ixgbe", 3600, auto, 4096, copied}, {"igc", 3600, zero, 0, zero}, {"ice", 3600, zero, 4096, zero},
		{"ice", 1500, auto, 4096, auto}, {"unknown", 1500, zero, 4096, zero}, {"virtio_net", 256, auto, 2048, auto},
		{"veth", 1500, auto, 2048, auto}, {"veth", 1774, auto, 2048, auto}, {"veth", 1775, auto, 4096, auto},
		{"veth", 3822, auto, 4096, auto}, {"veth", 3823, auto, 0, auto}, {"ice", 255, auto, 0, auto},
	} {
		chunk, mode, err := fit(&Interface{Name: "eth0", Driver: c.driver, MTU: c.mtu}, c.mode)
		if c.chunk == 0 {
			if !errors.Is(err, ErrMTU) || !strings.Contains(err.Error(), "ip link set dev eth0 mtu") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || chunk != c.chunk || mode != c.as {
			t.Errorf("%+v: chunks of %d, %v, %v", c, chunk, mode, err)
		}
	}
}
