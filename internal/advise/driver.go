// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// driver: what the table of drivers knows to keep native XDP away.
func driver(s *Snapshot) Finding {
	l, known := nic.LimitsOf(s.Interface.Driver)
	if !known {
		return notApplicable("the table of drivers has no row of %s: `xdpfab doctor %s` prints one", s.Interface.Driver,
			s.Interface.Name)
	}
	var what, how []string
	for _, n := range s.Interface.InTheWay() {
		what, how = append(what, n.What), append(how, n.Command)
	}
	if what == nil {
		return ok("nothing in the way of %s, by a row that was %s (Linux %s)", l.Driver,
			map[string]string{nic.Tried: "tried", nic.BySource: "read in its source"}[l.Evidence], l.Linux)
	}
	return advice(strings.Join(how, "; "), "%s", strings.Join(what, "; "))
}

// vlan: a NIC takes the tags of frames off before XDP. The XDP program then takes
// xdpfab's frames for an 802.1Q interface on top as if they were for the NIC itself.
func vlan(s *Snapshot) Finding {
	i := s.Interface
	names := strings.Join(i.VLANs, ", ")
	why, command := i.HiddenTags()
	switch {
	case names == "":
		return ok("no 802.1Q interface on top")
	case why != "":
		return advice(command, "%s on top, and %s", names, why)
	case s.Settings.OffloadsErr != nil:
		return missing(s.Settings.OffloadsErr, "%s takes no tags off", i.Driver)
	}
	return ok("%s on top; tags stay in the frames", names)
}
