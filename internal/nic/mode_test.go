// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
)

// A driver's refusal names the setting that stands in the way, and the command; a driver
// that has native XDP is never said to have none.
func TestRefused(t *testing.T) {
	refusal := func(errno unix.Errno, said string, none bool) *bpf.Refusal {
		return &bpf.Refusal{Interface: "x", Mode: bpf.Native, Errno: errno, Said: said, NoNative: none}
	}
	for _, c := range []struct {
		name   string
		change func(i *Interface)
		err    *bpf.Refusal
		none   bool
		say    []string
	}{
		{"ice, MTU", func(i *Interface) { i.Driver, i.MTU = "ice", 9000 },
			refusal(unix.EOPNOTSUPP, "MTU is too large for linear frames and XDP prog does not support frags", false), false,
			[]string{"too large for linear frames", "the MTU is 9000, at most 3046: `ip link set dev x mtu 3046`"}},
		{"bnxt, channels, without a word", func(i *Interface) { i.Driver = "bnxt_en"; i.channels = channelling{most: 8, apart: true} },
			refusal(unix.EOPNOTSUPP, "", true), false,
			[]string{"`ethtool -L x rx 0 tx 0 combined 2`", "dmesg"}},
		{"the same, before 6.3", func(i *Interface) {
			i.Driver, i.FeaturesKnown, i.features, i.channels = "bnxt_en", false, 0, channelling{most: 8, apart: true}
		}, refusal(unix.EOPNOTSUPP, "", true), false, []string{"combined 2"}},
		{"ena, channels", func(i *Interface) { i.Driver, i.RXQueues, i.channels = "ena", 8, channelling{most: 8, apart: false} },
			refusal(unix.EINVAL, "", false), false, []string{"8 channels in use, at most 4", "`ethtool -L x combined 4`"}},
		{"gve, queues", func(i *Interface) {
			i.Driver, i.RXQueues, i.TXQueues, i.channels = "gve", 3, 4, channelling{most: 16, apart: true}
		}, refusal(unix.EINVAL, "", false), false, []string{"`ethtool -L x rx 3 tx 3`"}},
		{"netvsc, LRO", func(i *Interface) { i.Driver, i.offloads = netvsc, map[string]bool{"rx-lro": true} },
			refusal(unix.EOPNOTSUPP, "XDP: not support LRO", false), false,
			[]string{`"XDP: not support LRO"`, "lro is on: `ethtool -K x lro off`"}},
		{"ixgbe, nothing to see", func(i *Interface) { i.Driver = "ixgbe" }, refusal(unix.EINVAL, "", false), false,
			[]string{"it needs no virtual functions (SR-IOV): `echo 0 > /sys/class/net/x/device/sriov_numvfs`"}},
		{"ice, MTU, with a program that takes fragments", func(i *Interface) {
			i.Driver, i.MTU, i.several = "ice", 9000, true
		}, refusal(unix.EINVAL, "no", false), false, []string{`"no"`, "with the driver ice: it needs its DDP package"}},
		{"a driver that has none", func(i *Interface) { i.Driver, i.FeaturesKnown, i.features = "e1000e", false, 0 },
			refusal(unix.EOPNOTSUPP, "", true), true, nil},
		{"an unknown driver", func(i *Interface) { i.Driver = "unheard-of" }, refusal(unix.EINVAL, "no", false), false,
			[]string{`"no"`}},
	} {
		s, i := good()
		c.change(&i)
		p := s.Plan(&i, Want{})
		err := p.Refused(c.err)
		if errors.Is(err, bpf.ErrNoNative) != c.none || !errors.Is(err, c.err.Errno) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, say := range c.say {
			if !strings.Contains(err.Error(), say) {
				t.Errorf("%s: %v\nwants %q", c.name, err, say)
			}
		}
	}
}
