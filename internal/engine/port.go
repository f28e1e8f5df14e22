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

// Tap has the engine show each packet that it receives or sends, until the next call of
// Tap; nil ends that. It shows no packet that it sends to itself, or that another engine
// of the group has received for it. show is called on the engine's thread, must not
// block, and must copy what it keeps. Without a tap the engine uses its port directly, at
// no cost. Engine's thread only.
func (e *Engine) Tap(show func(packet []byte, sent bool)) {
	if e.port = e.cfg.Port; show != nil {
		e.port = &tapped{Port: e.cfg.Port, show: show}
	}
}

// tapped is a port whose packets are shown.
type tapped struct {
	Port
	show   func(packet []byte, sent bool)
	buffer []byte // that Send will queue
}

// Receive implements Port.
func (t *tapped) Receive(packets [][]byte) int {
	n := t.Port.Receive(packets)
	for _, p := range packets[:n] {
		t.show(p, false)
	}
	return n
}

// Buffer implements Port.
func (t *tapped) Buffer() []byte {
	t.buffer = t.Port.Buffer()
	return t.buffer
}

// Send implements Port.
func (t *tapped) Send(n int) {
	t.show(t.buffer[:n], true)
	t.Port.Send(n)
}

// tapInbox shows a packet that somebody outside of the group has received.
func (e *Engine) tapInbox(p *parcel) {
	if t, is := e.port.(*tapped); is && !p.passedOn {
		t.show(p.packet, false)
	}
}
