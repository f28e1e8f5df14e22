// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/bpf"
)

// trunk makes a NIC with an interface for VLAN 100 on top.
func trunk(i *Interface) { i.VLANs, i.vlans = []string{"x.100"}, map[uint16]string{100: "x.100"} }

// Whatever keeps a policy from being what it says is told, with the command that mends
// it, and a VLAN that can never be told from others is refused.
func TestTags(t *testing.T) {
	const veth, physical = "veth", "device"
	for _, c := range []struct {
		name    string
		kind    string
		change  func(i *Interface)
		policy  bpf.VLANPolicy
		tells   string // of Tags
		misses  string // of MissesTags; empty: nothing
		refused bool
	}{
		{"untagged", physical, func(*Interface) {}, bpf.VLANUntagged, "untagged: frames of other VLANs pass to the kernel", "", false},
		{"access port", physical, func(i *Interface) { i.TagsOff = true }, bpf.VLANUntagged, "untagged", "", false},
		{"trunk", physical, trunk, bpf.VLANUntagged, "pass, to x.100", "", false},
		{"trunk, tags off", physical, func(i *Interface) { trunk(i); i.TagsOff = true }, bpf.VLANUntagged, "x.100",
			"ethtool -K x rxvlan off", false},
		{"trunk, any", physical, func(i *Interface) { trunk(i); i.TagsOff = true }, bpf.VLANAny, "any: frames of every VLAN",
			"frames for x.100 may come without their tag", false},
		{"bond", physical, func(i *Interface) { trunk(i); bond(i); i.TagsOff = true }, bpf.VLANUntagged, "x.100",
			"ethtool -K eth1 rxvlan off; ethtool -K eth2 rxvlan off", false},
		{"veth", veth, func(i *Interface) { i.TagsOff = true }, bpf.VLANUntagged, "untagged", "", false},
		{"veth with a VLAN", veth, trunk, bpf.VLANUntagged, "x.100", "txvlan off, at the other end", false},
		{"one VLAN", physical, trunk, 100, "with UDP for the addresses of x.100", "", false},
		{"one VLAN, tags off", physical, func(i *Interface) { i.TagsOff = true }, 100, "100: its frames alone", "left to the kernel", true},
		{"one VLAN without an interface", physical, func(*Interface) {}, 100, "no interface has its IP addresses", "", false},
		{"one VLAN, which the NIC keeps out", physical, func(i *Interface) { trunk(i); i.filtersTags = true }, 200,
			"200: its frames alone", "ip link add link x name x.200 type vlan id 200", false},
		{"one VLAN, which the NIC lets in", physical, func(i *Interface) { trunk(i); i.filtersTags = true }, 100, "x.100", "", false},
		{"one VLAN, veth", veth, func(*Interface) {}, 100, "100: its", "frames of VLAN 100 may come without their tag", false},
	} {
		s, i := good()
		i.Kind = c.kind
		c.change(&i)
		p := s.Plan(&i, Want{VLAN: c.policy})
		if tells := i.Tags(c.policy); !strings.Contains(tells, c.tells) || p.VLAN != c.policy.String() {
			t.Errorf("%s: %q, plan %q; want %q, %v", c.name, tells, p.VLAN, c.tells, c.policy)
		}
		if !strings.Contains(p.Tags, c.misses) || (p.Tags == "") != (c.misses == "") {
			t.Errorf("%s: misses %q, want %q", c.name, p.Tags, c.misses)
		}
		if told := len(p.Notes) > 0 && strings.Contains(strings.Join(p.Notes, "\n"), p.Tags); p.Tags != "" && !told {
			t.Errorf("%s: notes %q without %q", c.name, p.Notes, p.Tags)
		}
		if err := p.Err(); errors.Is(err, ErrTags) != c.refused || c.refused && !strings.Contains(err.Error(), "`ethtool -K x rxvlan off`") {
			t.Errorf("%s: %v; want it refused: %t", c.name, err, c.refused)
		}
	}
}

// Interfaces for 802.1ad tags, and those of other interfaces, are none of a VLAN's.
func TestVLANsOnTop(t *testing.T) {
	on := func(parent, id int, proto netlink.VlanProtocol) *netlink.Vlan {
		return &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "v", ParentIndex: parent}, VlanId: id, VlanProtocol: proto}
	}
	i := Interface{Index: 7, offloads: map[string]bool{"rx-vlan-hw-parse": true, "rx-vlan-filter": false}}
	i.tags([]netlink.Link{on(7, 5, netlink.VLAN_PROTOCOL_8021Q), on(7, 6, netlink.VLAN_PROTOCOL_8021AD),
		on(8, 7, netlink.VLAN_PROTOCOL_8021Q)})
	if len(i.vlans) != 1 || i.vlans[5] != "v" || len(i.VLANs) != 1 || !i.TagsOff || i.filtersTags {
		t.Errorf("%+v", i)
	}
}
