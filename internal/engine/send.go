// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// outgoing is a session with frames to send.
type outgoing interface {
	// emit writes the next frame into b, behind the room for the header of the slot's
	// path.
	emit(b []byte) int
	due() bool // whether emit would write a frame
	place() *slot
	// clean is called when nothing is left that is due.
	clean()
}

// path is how frames reach one peer.
type path struct {
	wire.Template
	self bool // the peer is this node: packets go through the group, not the port
}

// pathOf returns the path to a node, for packets with the header t.
func (e *Engine) pathOf(t wire.Template) path {
	return path{Template: t, self: t.LeadsTo(e.cfg.Local)}
}

// maxFrame returns the largest frame in bytes that a packet of the path can carry,
// sealed.
func (e *Engine) maxFrame(p *path) int { return e.cfg.MTU - p.Kind().Overhead() - e.cfg.SealRoom }

// touch puts a session on the list of those with frames to send.
func (e *Engine) touch(o outgoing, listed *bool) {
	if !*listed {
		*listed = true
		e.dirty = append(e.dirty, o)
	}
}

// flush sends the frames that are due, until the port has no buffer left, and kicks the
// port once. It returns the number of packets.
func (e *Engine) flush() int {
	if t := e.messenger; t != nil && t.listed && len(e.dirty) > 1 {
		e.lastToSend(t)
	}
	sent, full := e.sent, false
	e.sent = 0
	kept := e.dirty[:0]
	for _, o := range e.dirty {
		n, left := 0, true
		if !full {
			n, left, full = e.drain(o)
			sent += n
		}
		if left {
			kept = append(kept, o)
		}
	}
	clear(e.dirty[len(kept):])
	e.dirty = kept
	if sent > 0 {
		e.count[PacketsSent] += uint64(sent)
	}
	if sent > 0 || full {
		if err := e.port.Flush(); err != nil {
			e.count[PortErrors]++
		}
	}
	return sent
}

// drain sends the frames of one session. Some are left if buffers ran out, which full
// says, or if the engine has to take what it has sent to itself first.
func (e *Engine) drain(o outgoing) (sent int, left, full bool) {
	s := o.place()
	at := s.path.Len()
	for o.due() {
		if s.path.self && e.group.crowded(e) {
			return sent, true, false
		}
		b := e.port.Buffer()
		if b == nil {
			return sent, true, true
		}
		if n := o.emit(b[at:]); n > 0 {
			e.transmit(s, b, n)
			sent++
		}
	}
	o.clean()
	return sent, false, false
}

// transmit seals, completes and queues the frame of n bytes that lies in the port's
// buffer b behind the room for the header of the slot's path.
func (e *Engine) transmit(s *slot, b []byte, n int) {
	frame := b[s.path.Len():]
	packet := b[:s.path.Put(b, wire.SealBy(s.sealerOf(wire.TypeOf(frame)), frame, n))]
	s.traffic.sent(len(packet))
	if s.path.self {
		e.group.carry(e, packet, int(sessionOf(frame).Queue()), false)
		return
	}
	e.port.Send(len(packet))
}
