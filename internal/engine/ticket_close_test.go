// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"
)

// An operation by an address that is closed does not wait at the target any longer,
// although the session lives on by another address: be it that the operation waits, or
// that its request is still on its way.
func TestWaitEndsWithAddress(t *testing.T) {
	for name, arrives := range map[string]bool{"waits": true, "on its way": false} {
		t.Run(name, func(t *testing.T) {
			c, p := newWaits(t)
			q := c.peer(udp())
			c.write(q, 1, 2)
			if p.r != q.r {
				t.Fatal("two addresses of an endpoint have two sessions")
			}
			c.set(0, 5)
			c.pass = func(to int, _ []byte) bool { return to == 0 || arrives }
			r := c.waitSwap(q, 0, 7, 0)
			c.until("it is posted", func() bool { return p.r.conn.ini.InFlight() > 0 })
			if arrives {
				c.until("it waits", func() bool { return len(p.r.conn.tickets) == 1 })
			}
			q.Close()
			c.pass = nil
			c.idle(5 * time.Second)
			if len(r.all) != 1 || r.all[0].Outcome != NotExecuted {
				t.Errorf("%+v, want one that was not executed", r.all)
			}
			c.write(p, 1, 3)
			c.until("nothing waits", func() bool { return c.waiting() == 0 })
		})
	}
}
