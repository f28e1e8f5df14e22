// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import "strings"

// Bound is what the queues of an interface have really got, or get when they are bound.
type Bound struct {
	XDP, Copy string   // modes, as in nic.Plan
	Chunk     int      // bytes of a packet buffer
	Refused   []string // what the driver or the kernel refused, with the reason
	By        string   // how it is known, for the findings: "bound for an instant"
}

// Use puts what is known in place of what the driver's features promise.
func (s *Snapshot) Use(b Bound) {
	s.bound = &b
	s.Plan.XDP, s.Plan.Copy, s.Plan.Chunk = b.XDP, b.Copy, b.Chunk
}

// boundMode is the finding about zero-copy where it is known.
func (s *Snapshot) boundMode() Finding {
	b := s.bound
	found := b.XDP + " XDP, " + b.Copy + " (" + b.By + ")"
	if b.XDP == "native" && b.Copy == "zero-copy" {
		return ok("%s", found)
	}
	if len(b.Refused) > 0 {
		found += ": " + strings.Join(b.Refused, "; ")
	}
	return advice("a NIC whose driver has it: see docs/tuning.md", "%s", found)
}
