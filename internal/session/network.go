// SPDX-License-Identifier: Apache-2.0

package session

import "time"

// Network is what the sessions of one engine have found out about the network. It belongs
// to the engine's thread.
type Network struct {
	shortest int64 // round trip to any peer, in nanoseconds; 0 if none was measured
}

// longestBase is the longest round trip that Network takes for that of an idle path.
const longestBase = time.Millisecond

// took records a round trip, in nanoseconds.
func (n *Network) took(rtt int64) {
	if n != nil && rtt > 0 && (n.shortest == 0 || rtt < n.shortest) {
		n.shortest = rtt
	}
}

// base returns the longest round trip, in nanoseconds, that a session may take for that
// of its idle path: the configured one, or the shortest to any peer. One session cannot
// tell a long path from a queue that others keep full. But if no round trip to anybody
// was ever short, the paths are long.
func (n *Network) base(configured time.Duration) int64 {
	if n == nil {
		return int64(configured)
	}
	return max(int64(configured), min(n.shortest, int64(longestBase)))
}
