// SPDX-License-Identifier: Apache-2.0

package udpport

import "sync/atomic"

// tally counts what only the queue can see. The queue's thread writes it, any thread
// reads it.
type tally struct {
	lost    atomic.Uint64 // packets that the kernel refused to send
	joined  atomic.Uint64 // packets sent in messages of several
	uncut   atomic.Uint64 // such messages that the kernel refused to cut: their packets went one by one
	retries atomic.Uint64 // calls after which packets were left to be sent, for want of room
	dropped atomic.Uint64 // datagrams received that no peer can have sent
	refused atomic.Uint64 // errors of receiving
}

// counters returns them by name.
func (t *tally) counters() map[string]uint64 {
	return map[string]uint64{
		"tx_lost": t.lost.Load(), "tx_retries": t.retries.Load(), "udp_rx_dropped": t.dropped.Load(),
		"udp_rx_errors": t.refused.Load(), "udp_tx_joined": t.joined.Load(), "udp_tx_uncut": t.uncut.Load(),
	}
}
