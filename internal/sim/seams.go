// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// setLink gives a peer another way.
func setLink(p *engine.Peer, l wire.Link) {
	if err := p.SetLink(l); err != nil {
		panic(err) // the link is of the kind that the peer was made with
	}
}

// cancelLater makes the caller of an operation that was just posted stop waiting for
// it after a while.
func (o *op) cancelLater() {
	c, life := o.peer.c, o.peer.life
	w, n := c.n.w, c.n
	w.at(w.now+w.dice.scale(10*microsecond, 10*second), func() {
		if o.done || n.life != life || w.now < n.stalled {
			return
		}
		w.count(cancels)
		w.trace.event("cancel %v", o)
		o.cancelled = true
		c.eng().Collect(c.ring)
		o.peer.eng.Cancel(o)
		n.wake(w.now)
		w.at(max(w.now+10*millisecond, n.stalled+millisecond), func() {
			if !o.done && n.life == life && w.now > n.stalled {
				w.fail("%v is still under way, though its caller has let go of it", o)
			}
		})
	})
}
