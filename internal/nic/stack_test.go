// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"net"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// A bond tells what it consists of, which port is active, what it belongs to, and the
// 802.1Q interfaces on top; and it has as many queues as its ports.
func TestStack(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	attrs := func(index int, name string, master, parent, queues int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Index: 1<<20 + index, Name: name, MasterIndex: master, ParentIndex: parent, HardwareAddr: mac,
			NumRxQueues: queues}
	}
	const base = 1 << 20 // no interface of the kernel has these numbers
	bond := netlink.NewLinkBond(attrs(1, "bond0", base+4, 0, 16))
	bond.Mode, bond.ActiveSlave = netlink.BOND_MODE_ACTIVE_BACKUP, base+3
	all := []netlink.Link{
		bond,
		&netlink.Device{LinkAttrs: attrs(2, "eth1", base+1, 0, 2)},
		&netlink.Device{LinkAttrs: attrs(3, "eth2", base+1, 0, 4)},
		&netlink.Bridge{LinkAttrs: attrs(4, "br0", 0, 0, 1)},
		&netlink.Vlan{LinkAttrs: attrs(5, "bond0.7", 0, base+1, 1), VlanId: 7},
		&netlink.Device{LinkAttrs: attrs(6, "eth3", 0, 0, 8)},
	}
	i := Interface{Name: "bond0", Index: base + 1, Kind: "bond", Driver: "bonding", RXQueues: 16}
	i.stack(bond, all)
	i.tags(all)
	if len(i.Below) != 2 || i.Below[0].Name != "eth1" || i.Below[0].Active || i.Below[1].Name != "eth2" || !i.Below[1].Active {
		t.Errorf("below: %+v", i.Below)
	}
	if len(i.Above) != 1 || i.Above[0].Name != "br0" || i.Above[0].Kind != "bridge" || !i.Above[0].Served {
		t.Errorf("above: %+v", i.Above)
	}
	if !slices.Equal(i.VLANs, []string{"bond0.7"}) || i.RXQueues != 4 {
		t.Errorf("VLANs %v, %d queues", i.VLANs, i.RXQueues)
	}
}
