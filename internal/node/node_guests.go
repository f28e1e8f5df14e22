// SPDX-License-Identifier: Apache-2.0

package node

// GuestHost is the host of a node's guests as the node knows it.
type GuestHost interface {
	// EndGuests ends all guests, and waits until they have given back what they had.
	EndGuests()
	// Arrivals takes the guests that were handed over. serve, called after the engines
	// have been resumed, begins to serve them.
	Arrivals() (serve func())
}

// Host returns the host of the node's guests, or nil if it has never had one.
func (n *Node) Host() GuestHost {
	if h := n.Guests.Load(); h != nil {
		return *h
	}
	return nil
}
