// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Port is one queue of what carries frames, as the engine sees it: bursts of packets in
// and out. A packet is a frame, and before it what the port's medium puts there to tell
// the peer: see [wire.Medium]. All methods but Wake belong to the engine's thread.
type Port interface {
	// Receive fills packets with views of received packets and returns their number. The
	// views, which the engine may write to, are valid until Release.
	Receive(packets [][]byte) int
	// Release gives the packets of the last Receive back to the port.
	Release()
	// Buffer returns the transmit buffer that Send will queue next, with room for a frame
	// of the interface's MTU and what stands before it, or nil when all are in flight.
	Buffer() []byte
	// Send queues the first n bytes of the last Buffer.
	Send(n int)
	// Flush hands the queued packets to the wire: one system call a burst. The
	// error is nil as long as the port lives; a packet that got lost is not an
	// error, but counted by the port.
	Flush() error
	// Wait sleeps until a packet can be received, Wake is called or the time has passed.
	// It may return early.
	Wait(timeout time.Duration)
	// Wake ends the current or the next Wait. Any goroutine may call it.
	Wake()
}
