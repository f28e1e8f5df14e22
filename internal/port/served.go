// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"slices"
	"strings"
)

// Served describes where frames over UDP are accepted at this moment: the addresses, each
// with the length of its network's prefix, without those of the link alone; and the
// interfaces above this one. Both are empty for none; so are the addresses without UDP.
func (i *Interface) Served() (addresses, above string) {
	networks, _ := i.Networks() // an interface that is gone has none
	var list []string
	for _, n := range networks {
		if !n.Addr().IsLinkLocalUnicast() {
			list = append(list, n.String())
		}
	}
	slices.Sort(list)
	uppers, _ := i.resolver.Uppers()
	var names []string
	for _, u := range uppers {
		name := fmt.Sprintf("%s (%s)", u.Name, u.Kind)
		if u.Foreign {
			name = fmt.Sprintf("%s (%s, whose addresses are not served: packets to them come to %s; "+
				"`ip link set dev %s address %v` changes that)", u.Name, u.Kind, u.MAC, u.Name, macText(i.mac))
		}
		names = append(names, name)
	}
	return strings.Join(list, " "), strings.Join(names, ", ")
}

// Tags is why frames of other VLANs than Options.VLAN may be taken, or none, and the
// remedy; empty if there is no such reason.
func (i *Interface) Tags() string { return i.plan.Tags }

// Reason is why XDP is generic, for all that was known before the driver was asked.
func (i *Interface) Reason() string { return i.generic }
