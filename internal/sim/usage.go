// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"reflect"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// usage is what an engine holds on to.
type usage struct {
	lent     [3]int // buffers, by pool
	made     [3]int
	sessions int
	parties  int
}

// poolNames are the engine's fields of type *session.Pool.
var poolNames = [3]string{"reqs", "holds", "answers"}

// usageOf reads the engine's books. They are nobody's business but a test's, so
// the engine does not export them; reflection can read them and nothing else.
func usageOf(e *engine.Engine) (u usage) {
	v := reflect.ValueOf(e).Elem()
	for i, name := range poolNames {
		pool := v.FieldByName(name).Elem()
		u.made[i] = int(pool.FieldByName("made").Int())
		u.lent[i] = u.made[i] - pool.FieldByName("free").Len()
	}
	u.sessions = v.FieldByName("table").FieldByName("all").Len()
	u.parties = v.FieldByName("parties").Len()
	return u
}

// checkLimits checks that no engine exceeds what it was given.
func (w *world) checkLimits() {
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		for _, e := range n.engs {
			u := usageOf(e)
			for i, made := range u.made {
				if made > w.plan.buffers || u.lent[i] < 0 {
					w.fail("%v has %d buffers in pool %s, %d of them lent: limit %d", n, made, poolNames[i], u.lent[i], w.plan.buffers)
				}
			}
			if u.sessions > w.plan.sessions || u.parties > u.sessions {
				w.fail("%v has %d sessions, %d parties: limit %d", n, u.sessions, u.parties, w.plan.sessions)
			}
		}
	}
}

// checkEmpty checks that nothing is left of the sessions.
func (w *world) checkEmpty() {
	for _, n := range w.nodes {
		for _, e := range n.engs {
			if u := usageOf(e); u.lent != [3]int{} || u.sessions+u.parties > 0 || !e.Idle() {
				w.fail("%v keeps %v buffers of pools %v, %d sessions and %d parties after the end; idle: %t",
					n, u.lent, poolNames, u.sessions, u.parties, e.Idle())
			}
		}
		for _, c := range n.clients {
			if !c.ring.Empty() {
				w.fail("%v: a submission ring has an entry that never came back", n)
			}
		}
	}
}
