// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sim

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// callTap has the guest look at its ring when there is something for it.
type callTap struct {
	session.MobileCallee
	g *guest
}

// Ask implements session.Callee.
func (c *callTap) Ask(psn uint32, x *wire.Call) wire.Status {
	defer c.g.look()
	return c.MobileCallee.Ask(psn, x)
}

// Recall implements session.Callee.
func (c *callTap) Recall() {
	c.MobileCallee.Recall()
	c.g.look()
}

// Close implements session.Callee.
func (c *callTap) Close() {
	c.MobileCallee.Close()
	c.g.look()
}

// What holds for a function of the node holds for one of its guest, too, also when the
// guest dies, or another process takes the place of its host.
func TestCallsToGuestsUnderFaults(t *testing.T) {
	tryCalls(t, 10, plan{attends: 1 << arrayRegion}, func(x *callTrial, seed uint64) (trouble func()) {
		target := x.w.nodes[0]
		target.callee = func(endpoint uint16, from wire.Addr, _ session.Party, ended func()) session.Callee {
			if target.guest == nil {
				return nil
			}
			return &callTap{target.guest.in.NewCallee(endpoint, from, ended).(session.MobileCallee), target.guest}
		}
		target.function = func(g *guest, told func()) session.Callee {
			return &function{t: x, life: target.life, guest: g, told: told}
		}
		return func() {
			switch seed % 5 {
			case 1:
				x.endTargets()
			case 2:
				x.restart()
			case 3:
				if target.guest != nil {
					x.w.guestDeathOf(target, 50*microsecond)
				}
			case 4:
				if target.guest != nil {
					target.takeOver(t)
				}
			}
		}
	})
}
