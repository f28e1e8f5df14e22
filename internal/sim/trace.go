// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// tracer makes a fingerprint of everything that happens, and on demand a text.
type tracer struct {
	w    *world
	sum  hash.Hash64
	text io.Writer // nil for none
}

func newTracer(w *world, text io.Writer) *tracer {
	return &tracer{w: w, sum: fnv.New64a(), text: text}
}

// packet records a packet that leaves ('>') or reaches ('<') a node.
func (t *tracer) packet(what byte, n *node, b []byte) {
	var head [18]byte
	head[0], head[1] = what, byte(n.index)
	binary.LittleEndian.PutUint64(head[2:], uint64(t.w.now))
	binary.LittleEndian.PutUint64(head[10:], uint64(len(b)))
	_, _ = t.sum.Write(head[:])
	_, _ = t.sum.Write(b[:min(len(b), 64)]) // the frame's checksum stands for the rest
	if t.text != nil {
		t.note("%c %s", what, describe(n, b))
	}
}

// note writes a line about something other than a packet.
func (t *tracer) event(format string, args ...any) {
	fmt.Fprintf(t.sum, format, args...)
	if t.text != nil {
		t.note(format, args...)
	}
}

func (t *tracer) note(format string, args ...any) {
	fmt.Fprintf(t.text, "%14.6f ms  ", float64(t.w.now)/float64(millisecond))
	fmt.Fprintf(t.text, format+"\n", args...)
}

// describe describes a packet in words.
func describe(n *node, b []byte) string {
	frame, src, reason := wire.Decap(b)
	if reason != wire.ReasonOK {
		return fmt.Sprintf("%v damaged: %v", n, reason)
	}
	from, to := src.Remote[5], src.Local[5]
	if src.RemoteIP.IsValid() { // the nodes; a MAC address may be a gateway's
		a, b := src.RemoteIP.As16(), src.LocalIP.As16()
		from, to = a[15]-1, b[15]-1
	}
	who := fmt.Sprintf("%v (%d to %d)", n, from, to)
	h, payload, reason := wire.Parse(frame)
	if reason != wire.ReasonOK {
		return fmt.Sprintf("%s damaged: %v", who, reason)
	}
	s := fmt.Sprintf("%s %v session %x epoch %x psn %x ack %x", who, h.Type, h.Session, h.Epoch, h.PSN, h.Ack)
	if h.Flags&wire.FlagRetx != 0 {
		s += " again"
	}
	if h.Sack != 0 {
		s += fmt.Sprintf(" sack %b", h.Sack)
	}
	switch h.Type {
	case wire.Request:
		s += fmt.Sprintf(" ops %d", h.Ops)
	case wire.Hello:
		var m wire.HelloMsg
		if m.Parse(payload) == wire.ReasonOK {
			s += fmt.Sprintf(" of %x nonce %x resume %x psn %x", m.Session, m.Nonce, m.Resume.Session, m.Resume.PSN)
		}
	case wire.HelloAck:
		var m wire.HelloAckMsg
		if m.Parse(payload) == wire.ReasonOK {
			s += fmt.Sprintf(" %v: %x, resume %x psn %x", m.Status, m.Session, m.Resume.Session, m.Resume.PSN)
		}
	case wire.Reset:
		var m wire.ResetMsg
		if m.Parse(payload) == wire.ReasonOK {
			s += fmt.Sprintf(" of %x psn %x reason %d", m.Session, m.PSN, m.Reason)
		}
	}
	return s
}
