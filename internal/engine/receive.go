// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// onPacket takes one packet from the port or the inbox: whose is it?
func (e *Engine) onPacket(packet []byte) {
	// Header and source are the engine's: as local variables they would escape
	// through the interface call and be allocated anew for every packet.
	h, src := &e.header, &e.source
	frame, from, reason := wire.Decap(packet)
	if reason != wire.ReasonOK {
		e.refuse(reason)
		return
	}
	if from.Local != e.cfg.Local {
		e.refuse(wire.ReasonNotOurs)
		return
	}
	var payload []byte
	*src = from
	if *h, payload, reason = wire.Parse(frame); reason != wire.ReasonOK {
		e.refuse(reason)
		return
	}
	if h.Type == wire.Hello {
		e.onHello(h, payload, src)
		return
	}
	id := wire.SessionID(h.Session)
	if x := e.table.find(id); x != nil {
		if !x.receive(h, payload) {
			e.count[StaleEpoch]++
			e.onStranger(h, src, wire.ResetStaleEpoch)
		}
		return
	}
	if h.Type == wire.Reset {
		e.onStrayReset(h, payload, packet)
		return
	}
	if q := int(id.Queue()); q != e.cfg.Queue && !e.passedOn && e.group.pass(packet, q) {
		e.count[HandedOver]++
		return
	}
	e.count[UnknownSession]++
	e.onStranger(h, src, wire.ResetUnknownSession)
}

// refuse counts a packet that the codec rejects.
func (e *Engine) refuse(r wire.Reason) { e.count[refusedBase+Counter(r)]++ }

// onStranger answers a frame of a session that does not exist here, or not any
// more: the sender has to learn that. Only what asks for an answer
// gets one, so two nodes cannot keep resetting each other.
func (e *Engine) onStranger(h *wire.Header, src *wire.Source, why wire.ResetReason) {
	if h.Type == wire.Request || h.Type == wire.Probe {
		e.reply(e.pathTo(src), func(b []byte) int {
			return session.Strange(b, h, e.cfg.Lane, why)
		})
	}
}

// onStrayReset looks for the initiator that a reset means. Its sender could not
// know our session's id, so it quotes its own, and the epoch.
func (e *Engine) onStrayReset(h *wire.Header, payload, packet []byte) {
	var m wire.ResetMsg
	if m.Parse(payload) != wire.ReasonOK {
		e.count[Invalid]++
		return
	}
	for _, x := range e.table.all {
		if c, ok := x.(*conn); ok && c.ini.Names(m.Session, h.Epoch) {
			c.receive(h, payload)
			return
		}
	}
	if e.passedOn || !e.group.spread(packet, e) { // perhaps another queue's session
		e.count[UnknownSession]++
	}
}

// reply sends one frame outside any session. Without a buffer it is dropped: who
// asked will ask again.
func (e *Engine) reply(link path, write func(b []byte) int) {
	b := e.port.Buffer()
	if b == nil {
		return
	}
	e.transmit(&link, b, write(b[link.Len():]))
	e.count[PacketsSent]++
	e.replied = true
}

// pathTo returns the way back to where a packet came from.
func (e *Engine) pathTo(src *wire.Source) path {
	return path{Template: src.Reply(), self: src.Remote == e.cfg.Local}
}

// sessionOf reads the session id of a frame of our own making.
func sessionOf(frame []byte) wire.SessionID {
	return wire.SessionID(binary.LittleEndian.Uint32(frame[2:]))
}
