// SPDX-License-Identifier: Apache-2.0

package xdpfab

// beyond is what the engines of a domain know of queues of the same interface that other
// processes drive; see engine.Config. Both are nil if there are none.
type beyond struct {
	elsewhere func(endpoint uint16) (queue int, is bool)
	outside   func(packet []byte, queue int) bool
}
