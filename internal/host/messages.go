// SPDX-License-Identifier: Apache-2.0

package host

import (
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

// answered takes what the guest says of operations that it was to execute. Engine's
// thread.
func (g *Guest) answered(session, ticket uint64, answer []byte) error {
	err := g.in.Answer(session, ticket, answer)
	g.room()
	return err
}

// room has the engines try again what had to wait for room in the ring of arrivals, or
// for the guest to admit it, or to execute it.
func (g *Guest) room() {
	if g.in.Refused() {
		g.h.n.Room()
	}
}
