// SPDX-License-Identifier: Apache-2.0

package node

// Beyond is what the engines of a domain know of queues of the same interface that other
// processes drive; see engine.Config. Both are nil if there are none.
type Beyond struct {
	Elsewhere func(endpoint uint16) (queue int, is bool)
	Outside   func(packet []byte, queue int) bool
}
