// SPDX-License-Identifier: Apache-2.0

package node

// GuestHost is the host of a node's guests as the node knows it.
type GuestHost interface {
	// EndGuests ends all guests, and waits until they have given back what they had.
	EndGuests()
	// Arrivals takes the guests that were handed over. serve, called after the engines
	// have been resumed, begins to serve them.
	Arrivals() (serve func())
	// Elsewhere returns the queue of the borrower that has an endpoint. Any engine's
	// thread.
	Elsewhere(endpoint uint16) (queue int, is bool)
	// Outside sends a packet to the borrower of a queue. Any engine's thread.
	Outside(packet []byte, queue int) (sent bool)
}

// Host returns the host of the node's guests, or nil if it has never had one.
func (n *Node) Host() GuestHost {
	if h := n.Guests.Load(); h != nil {
		return *h
	}
	return nil
}

// elsewhere and outside are the host's, and find nothing if there is no host.
func (n *Node) elsewhere(endpoint uint16) (queue int, is bool) {
	if h := n.Host(); h != nil {
		return h.Elsewhere(endpoint)
	}
	return 0, false
}

func (n *Node) outside(packet []byte, queue int) (sent bool) {
	if h := n.Host(); h != nil {
		return h.Outside(packet, queue)
	}
	return false
}
