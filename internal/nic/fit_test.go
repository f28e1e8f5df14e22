// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/bpf"
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
		f, err := fit(&Interface{Name: "eth0", Driver: c.driver, MTU: c.mtu}, c.mode)
		if c.chunk == 0 {
			if !errors.Is(err, ErrMTU) || !strings.Contains(err.Error(), "ip link set dev eth0 mtu") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || f != (fitting{c.chunk, 0, c.as}) {
			t.Errorf("%+v: %+v, %v", c, f, err)
		}
	}
}

// Above the MTU that one buffer of driver and socket holds, packets take several, if both
// have them; with zero-copy no more than the driver takes. A refusal names an MTU that is
// not refused.
func TestFitSeveral(t *testing.T) {
	const auto, copied, zero = xsk.Auto, xsk.Copy, xsk.ZeroCopy
	for _, c := range []struct {
		driver string
		mtu    int
		most   int // buffers with zero-copy
		mode   xsk.Mode
		want   fitting // zero: refused
	}{
		{"veth", 3498, 0, auto, fitting{4096, 0, auto}}, {"veth", 3499, 0, auto, fitting{4096, 1, copied}},
		{"veth", 4078, 0, auto, fitting{4096, 1, copied}}, {"veth", 4079, 0, auto, fitting{4096, 2, copied}},
		{"veth", 9000, 0, auto, fitting{4096, 4, copied}}, {"veth", 65518, 0, copied, fitting{4096, 16, copied}},
		{"veth", 65519, 0, auto, fitting{}}, {"veth", 9000, 0, zero, fitting{}},
		{"virtio_net", 3507, 1, auto, fitting{4096, 1, copied}}, {"virtio_net", 9000, 1, zero, fitting{}},
		{"ice", 9000, 8, auto, fitting{4096, 4, auto}}, {"ice", 9000, 8, zero, fitting{4096, 4, zero}},
		{"ice", 27622, 8, zero, fitting{4096, 8, zero}}, {"ice", 27623, 8, zero, fitting{}},
		{"unknown", 3822, 0, auto, fitting{4096, 0, auto}}, {"unknown", 9000, 0, auto, fitting{4096, 4, copied}},
	} {
		i := Interface{Name: "eth0", Driver: c.driver, MTU: c.mtu, ZeroCopySegments: c.most, several: true}
		f, err := fit(&i, c.mode)
		if c.want != (fitting{}) {
			if err != nil || f != c.want {
				t.Errorf("%+v: %+v, %v", c, f, err)
			}
			continue
		}
		_, say, found := strings.Cut(fmt.Sprint(err), "mtu ")
		if !errors.Is(err, ErrMTU) || !found {
			t.Errorf("%+v: %v", c, err)
		}
		_, _ = fmt.Sscan(say, &i.MTU)
		if f, err := fit(&i, c.mode); err != nil || i.MTU >= c.mtu {
			t.Errorf("%+v: the refusal names an MTU of %d: %+v, %v", c, i.MTU, f, err)
		}
	}
}

// In generic mode the kernel divides the packets, so the driver's limits do not count.
func TestJumboInGenericMode(t *testing.T) {
	s, i := good()
	i.Driver, i.MTU = "igb", 9000
	if p := s.Plan(&i, Want{}); p.Usable {
		t.Errorf("native: %+v", p)
	}
	if p := s.Plan(&i, Want{XDP: bpf.Generic}); !p.Usable || p.Segments != 4 {
		t.Errorf("generic: %+v", p)
	}
	for _, c := range []struct{ mtu, segments int }{{3046, 0}, {3047, 0}, {OneBufferMTU, 0}, {OneBufferMTU + 1, 1}} {
		i.MTU = c.mtu
		if p := s.Plan(&i, Want{XDP: bpf.Generic}); !p.Usable || p.Segments != c.segments || p.MostMTU() != MaxMTU {
			t.Errorf("generic, MTU %d: %+v, want %d segments", i.MTU, p, c.segments)
		}
	}
	s.Kernel = "6.5.0"
	if p := s.Plan(&i, Want{XDP: bpf.Generic}); p.Usable || p.MostMTU() != OneBufferMTU {
		t.Errorf("generic, on an old kernel: %+v", p)
	}
	if i.MTU = OneBufferMTU; !s.Plan(&i, Want{XDP: bpf.Generic}).Usable {
		t.Errorf("generic, on an old kernel, an MTU of %d", i.MTU)
	}
}
