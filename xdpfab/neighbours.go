// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/engine"
)

// beyond is what the engines of a domain know of queues of the same interface that other
// processes drive; see engine.Config. Both are nil if there are none.
type beyond struct {
	elsewhere func(endpoint uint16) (queue int, is bool)
	outside   func(packet []byte, queue int) bool
}

// neighbours returns what lies beyond the domain's own queues, of which it also returns
// the first.
func (n *Node) neighbours() (b beyond, first int) {
	switch dev := n.dev.(type) {
	case *borrowed:
		return beyond{n.abroad, dev.outside}, dev.queue.Number()
	case lender:
		if len(dev.Spares()) > 0 {
			return beyond{n.elsewhere, n.outside}, 0
		}
	}
	return beyond{}, 0
}

// meetNeighbours begins to take the packets that arrive on queues of others.
func (n *Node) meetNeighbours(e *engine.Engine) {
	switch dev := n.dev.(type) {
	case *borrowed:
		dev.join(e)
	case lender:
		dev.Mind(func(packet []byte) { e.Deliver(packet, false) }, n.happened)
	}
}
