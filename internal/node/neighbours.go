// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/xdpfab/xdpfab/internal/engine"

// The engines of one interface are in several processes while queues are lent: those of
// the host, and that of each borrower.

// neighboured is a device of which other processes may drive queues.
type neighboured interface {
	// OtherQueues tells an engine of them; see engine.Config.
	OtherQueues(n *Node, c *engine.Config)
}

// findOtherQueues tells an engine of the queues that other processes drive.
func (n *Node) findOtherQueues(c *engine.Config) {
	if d, is := n.Dev.(neighboured); is {
		d.OtherQueues(n, c)
	}
}

// Neighbours is the host of guests that borrow queues. Both methods are called on any
// engine's thread.
type Neighbours interface {
	// Elsewhere returns the queue of the borrower that has an endpoint.
	Elsewhere(endpoint uint16) (queue int, is bool)
	// Outside sends a packet to the borrower of a queue.
	Outside(packet []byte, queue int) (sent bool)
}

// elsewhere and outside are the host's, and find nothing if there is no host.
func (n *Node) elsewhere(endpoint uint16) (queue int, is bool) {
	if h, is := n.Host().(Neighbours); is {
		return h.Elsewhere(endpoint)
	}
	return 0, false
}

func (n *Node) outside(packet []byte, queue int) (sent bool) {
	if h, is := n.Host().(Neighbours); is {
		return h.Outside(packet, queue)
	}
	return false
}

// Abroad reports whether an endpoint is not one that this domain serves. It is called on
// the engine's thread.
func (n *Node) Abroad(endpoint uint16) (queue int, is bool) {
	return engine.AnyQueue, n.Numbers.Serving(endpoint) == nil
}
