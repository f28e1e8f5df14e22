// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// A step is one moment of the world. A round that looks at its port again and again takes
// longer, though, so the packets that reach the node meanwhile are there at the next
// look.

// arriving is a packet that reaches a node by the last part of its way.
type arriving struct {
	at   int64
	hand func() // gives it to the node
	came bool   // it has been given
}

// lookCost is how long another look at a port takes, ns.
const lookCost = 50

// expect makes a packet reach the node at a time, or before, in a round that lasts so
// long.
func (n *node) expect(at int64, hand func()) {
	a := &arriving{at: at, hand: hand}
	n.coming = append(n.coming, a)
	n.w.at(at, func() {
		n.coming = slices.DeleteFunc(n.coming, func(x *arriving) bool { return x == a })
		if !a.came {
			hand()
		}
	})
}

// lookAgain lets time pass in a step, and what arrives meanwhile be there.
func (n *node) lookAgain() {
	n.until += lookCost
	for _, a := range n.coming {
		if !a.came && a.at <= n.until {
			a.came = true
			a.hand()
		}
	}
}
