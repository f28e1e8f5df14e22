// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
)

// eachQueue calls f with the usage of each queue of each node that is up.
func (w *world) eachQueue(f func(n *node, e *engine.Engine, u engine.Usage, x executor.Usage)) {
	for _, n := range w.nodes {
		for i, e := range n.engs {
			f(n, e, e.Usage(), n.execs[i].Usage())
		}
	}
}

// check looks for contradictions in the state of the node's engines.
func (n *node) check() {
	n.checkPlaces()
	for _, b := range n.boxes {
		if b != nil {
			b.check()
		}
	}
	for i, e := range n.engs {
		if err := errors.Join(e.Check(), n.execs[i].Check()); err != nil {
			n.w.fail("%v, queue %d: %v", n, i, err)
		}
	}
}

// checkLimits checks that no engine exceeds its limits.
func (w *world) checkLimits() {
	w.eachQueue(func(n *node, _ *engine.Engine, u engine.Usage, x executor.Usage) {
		for _, p := range []session.PoolUsage{u.Requests, x.Answers, x.Holds} {
			if p.Made > w.plan.buffers || p.Lent < 0 || p.Lent > p.Made {
				w.fail("%v has %+v buffers of requests, %+v of answers, %+v of early requests: limit %d",
					n, u.Requests, x.Answers, x.Holds, w.plan.buffers)
			}
		}
		if u.Sessions > w.plan.sessions || u.Parties > u.Accepted || x.Parties != u.Parties {
			w.fail("%v has %+v, its executor %+v: limit %d sessions", n, u, x, w.plan.sessions)
		}
	})
}

// checkEmpty checks that no session has left anything behind.
func (w *world) checkEmpty() {
	w.eachQueue(func(n *node, e *engine.Engine, u engine.Usage, x executor.Usage) {
		if u.Requests.Lent+x.Answers.Lent+x.Holds.Lent+u.Sessions+u.Parties+x.Parties+x.Handed > 0 || !e.Idle() {
			w.fail("%v keeps %+v and %+v after the end; idle: %t", n, u, x, e.Idle())
		}
	})
	for _, n := range w.nodes {
		for _, b := range n.boxes {
			if b != nil {
				b.checkDrained()
			}
		}
		for _, c := range n.clients {
			if !c.ring.Empty() {
				w.fail("%v: a submission ring has an entry that never came back", n)
			}
		}
	}
}
