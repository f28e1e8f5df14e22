// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// linkSetter is an engine's peer that can be led another way. Without it the peers of
// a node whose gateway has moved would be cut off for good, so gateways are then only
// taken over by routers that answer to the former address as well.
type linkSetter interface{ SetLink(wire.Link) error }

// canceller is an engine's peer whose operations can be let go of: the operation
// completes at once with what is known of it, and its memory is the caller's again.
type canceller interface{ Cancel(*engine.Op) bool }

func canSetLink() bool { _, ok := any((*engine.Peer)(nil)).(linkSetter); return ok }
func canCancel() bool  { _, ok := any((*engine.Peer)(nil)).(canceller); return ok }

func setLink(p *engine.Peer, l wire.Link) {
	if err := any(p).(linkSetter).SetLink(l); err != nil {
		panic(err) // the link is of the kind that the peer was made with
	}
}

// cancelLater has the caller of an operation that was just posted stop waiting for it
// after a while.
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
		any(o.peer.eng).(canceller).Cancel(o.entry)
		n.wake(w.now)
		w.at(max(w.now+10*millisecond, n.stalled+millisecond), func() {
			if !o.done && n.life == life && w.now > n.stalled {
				w.fail("%v is still under way, though its caller has let go of it", o)
			}
		})
	})
}
