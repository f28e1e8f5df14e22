// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"fmt"
	"strconv"
)

// VLANPolicy describes whose frames are accepted, by their 802.1Q tag: VLANUntagged,
// VLANAny, or the id of one VLAN, from 1 to MaxVLAN. Frames of other VLANs are left to
// the kernel (PassVLAN), whose 802.1Q interfaces get them.
//
// The program sees the tags that lie in the frames. A NIC may take the tag off a frame
// before the program runs, and a veth carries it beside the frame: the program then takes
// the frame for an untagged one. Since Linux 6.8 some drivers would tell it the tag, but
// only a program that is bound to one interface; such a program may call no other, and so
// would have no executor.
type VLANPolicy uint16

// The policies.
const (
	// VLANUntagged accepts frames without a tag, or with a priority alone (VLAN id 0).
	VLANUntagged VLANPolicy = 0
	// VLANAny accepts frames untagged or with one tag of any id.
	VLANAny VLANPolicy = 1<<16 - 1
	// MaxVLAN is the greatest id of a VLAN.
	MaxVLAN = 4094
)

// String returns "any", "untagged" or the VLAN's id, as ParseVLAN takes it.
func (v VLANPolicy) String() string {
	switch v {
	case VLANAny:
		return "any"
	case VLANUntagged:
		return "untagged"
	}
	return strconv.Itoa(int(v))
}

// ParseVLAN reads the text of a policy.
func ParseVLAN(s string) (VLANPolicy, error) {
	for _, v := range []VLANPolicy{VLANAny, VLANUntagged} {
		if s == v.String() {
			return v, nil
		}
	}
	id, err := strconv.Atoi(s)
	if err != nil || id < 1 || id > MaxVLAN {
		return 0, fmt.Errorf("bpf: %w: VLAN %q: want \"untagged\", \"any\", or the id of one from 1 to %d", ErrConfig,
			s, MaxVLAN)
	}
	return VLANPolicy(id), nil
}

// ID is the id of the one VLAN whose frames are accepted; 0 if there is none.
func (v VLANPolicy) ID() uint16 {
	if v == VLANAny {
		return 0
	}
	return uint16(v)
}

// Accepts reports whether frames of a VLAN are accepted; 0 stands for untagged ones.
func (v VLANPolicy) Accepts(id uint16) bool { return v == VLANAny || uint16(v) == id }
