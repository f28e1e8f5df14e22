// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/bpf"
)

// ErrTags means that the frames of a VLAN cannot be told from others.
var ErrTags = errors.New("the NIC takes 802.1Q tags off")

// tags reads what becomes of 802.1Q tags, and which interfaces are on top for them.
func (i *Interface) tags(all []netlink.Link) {
	i.TagsOff, i.filtersTags = i.offloads["rx-vlan-hw-parse"], i.offloads["rx-vlan-filter"]
	for _, l := range all {
		v, is := l.(*netlink.Vlan)
		if !is || v.ParentIndex != i.Index || v.VlanProtocol == netlink.VLAN_PROTOCOL_8021AD {
			continue
		}
		if i.vlans == nil {
			i.vlans = map[uint16]string{}
		}
		i.VLANs = append(i.VLANs, v.Name)
		i.vlans[uint16(v.VlanId)] = v.Name
	}
}

// HiddenTags reports why the XDP program may see frames of VLANs without their tags, and
// the command that changes it. Both are empty if tags lie in the frames.
func (i *Interface) HiddenTags() (why, command string) {
	switch {
	case i.Kind == "veth":
		return "the other end of the veth may send tags beside the frames", "ethtool -K … txvlan off, at the other end"
	case !i.TagsOff:
		return "", ""
	}
	names := []string{i.Name}
	for n, b := range i.Below { // the ports of a bond take the tags off
		names = append(names[:n], b.Name)
	}
	return ErrTags.Error(), "ethtool -K " + strings.Join(names, " rxvlan off; ethtool -K ") + " rxvlan off"
}

// MissesTags reports why a policy of VLANs may not hold, and the remedy; empty if it
// does, as far as that is known.
func (i *Interface) MissesTags(v bpf.VLANPolicy) string {
	why, command := i.HiddenTags()
	switch id := v.ID(); {
	case why != "" && len(i.VLANs) > 0:
		return fmt.Sprintf("frames for %s may come without their tag, and would be taken here and answered without "+
			"it: %s; remedy: %s", strings.Join(i.VLANs, ", "), why, command)
	case why != "" && id != 0:
		return fmt.Sprintf("frames of VLAN %d may come without their tag, and would be left to the kernel: %s; "+
			"remedy: %s", id, why, command)
	case id != 0 && i.filtersTags && i.vlans[id] == "":
		return fmt.Sprintf("the NIC may let no frame of VLAN %d in, as there is no interface for it; remedy: "+
			"ip link add link %s name %s.%d type vlan id %d, and set it up", id, i.Name, i.Name, id, id)
	}
	return ""
}

// Tags says which frames the program takes with a policy, in words.
func (i *Interface) Tags(v bpf.VLANPolicy) string {
	switch id := v.ID(); {
	case v == bpf.VLANAny:
		return "any: frames of every VLAN are taken, and answered with the tag that they had"
	case id != 0 && i.vlans[id] == "":
		return fmt.Sprintf("%d: its frames alone are taken; no interface has its IP addresses", id)
	case id != 0:
		return fmt.Sprintf("%d: its frames alone are taken, with UDP for the addresses of %s", id, i.vlans[id])
	case len(i.VLANs) > 0:
		return "untagged: frames of other VLANs pass, to " + strings.Join(i.VLANs, ", ")
	}
	return "untagged: frames of other VLANs pass to the kernel"
}

// untold refuses to serve one VLAN where no frame shows its own.
func (i *Interface) untold(v bpf.VLANPolicy) error {
	if v.ID() == 0 || i.Kind == "veth" || !i.TagsOff {
		return nil
	}
	_, command := i.HiddenTags()
	return fmt.Errorf("%s: %w, so that no frame shows that it is of VLAN %d: `%s`; or serve the VLAN's own interface, "+
		"with --xdp generic", i.Name, ErrTags, v.ID(), command)
}
