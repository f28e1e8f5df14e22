// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/share"
)

// admit takes what the guest says of its room for messages. Engine's thread.
func (g *Guest) admit(session uint64, x *share.Admission) {
	if session != 0 {
		g.in.Admit(session, x)
	}
	if ep := g.h.endpointOf(x.Endpoint); ep != nil && ep.Guest == g && ep.identity == x.Identity {
		g.in.Grant(&ep.credit, x.Room)
	}
	g.room()
}

// room has the engines try again what had to wait for room in the ring of arrivals, or
// for the guest to admit it.
func (g *Guest) room() {
	if g.in.Refused() {
		g.h.n.Room()
	}
}

// exportArrivals returns what the next host needs to go on with messages. The engines
// are paused.
func (g *Guest) exportArrivals() share.ArrivalsState {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	s := g.in.Export()
	s.Credits = map[uint16]matching.Room{}
	for number, ep := range g.endpoints {
		s.Credits[number] = g.in.Room(&ep.credit)
	}
	return s
}

// restoreCredits gives endpoints the credit that they had at another host.
func (g *Guest) restoreCredits(s *share.ArrivalsState) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for number, ep := range g.endpoints {
		g.in.Grant(&ep.credit, s.Credits[number])
	}
}
