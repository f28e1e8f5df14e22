// SPDX-License-Identifier: Apache-2.0

package xdpfab

// guestHost is the host of a node's guests as the node knows it.
type guestHost interface {
	// endGuests ends all guests, and waits until they have given back what they had.
	endGuests()
	// arrivals takes the guests that were handed over. serve, called after the engines
	// have been resumed, begins to serve them.
	arrivals() (serve func())
	// elsewhere returns the queue of the borrower that has an endpoint. Any engine's
	// thread.
	elsewhere(endpoint uint16) (queue int, is bool)
	// outside sends a packet to the borrower of a queue. Any engine's thread.
	outside(packet []byte, queue int) (sent bool)
}

// host returns the host of the node's guests, or nil if it has never had one.
func (n *Node) host() guestHost {
	if h := n.guests.Load(); h != nil {
		return *h
	}
	return nil
}

// elsewhere and outside are the host's, and find nothing if there is no host.
func (n *Node) elsewhere(endpoint uint16) (queue int, is bool) {
	if h := n.host(); h != nil {
		return h.elsewhere(endpoint)
	}
	return 0, false
}

func (n *Node) outside(packet []byte, queue int) (sent bool) {
	if h := n.host(); h != nil {
		return h.outside(packet, queue)
	}
	return false
}
