// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// arrival is the packet at hand. It is a field of the engine: as a local variable the
// header would escape through the interface calls and be allocated anew for every packet.
type arrival struct {
	packet   []byte
	passedOn bool        // it came through the inbox, from another queue
	header   wire.Header // of its frame
	from     wire.Source // where it came from: see Engine.source
}

// receive takes one burst from the port, and what follows it at once if that saves acks.
func (e *Engine) receive() int {
	if e.paused {
		return 0
	}
	e.delayed = 0
	n := e.takeBurst(burst)
	if n > 0 && n == e.delayed && !e.teamed {
		n += e.receiveMore(n)
	}
	return n
}

// takeBurst takes at most so many packets from the port.
func (e *Engine) takeBurst(most int) int {
	n := e.port.Receive(e.packets[:most])
	if n == 0 {
		return 0
	}
	for i := range n {
		e.onPacket(e.packets[i], false)
	}
	e.borrowed = true
	e.count[PacketsReceived] += uint64(n)
	return n
}

// takeInbox handles the packets that other engines passed on, or that were delivered.
func (e *Engine) takeInbox() int {
	if e.paused {
		return 0
	}
	n := len(e.inbox)
	for range n {
		b := <-e.inbox
		e.tapInbox(&b)
		e.onPacket(b.packet, b.passedOn)
		e.group.recycle(b.packet)
	}
	if e.group != nil {
		n += e.group.takePassed(e, e.takeParcel)
	}
	return n
}

// onPacket takes one packet from the port or the inbox, and hands it to its session. A
// frame for an engine of another queue is passed on as it is: only that one can open it.
func (e *Engine) onPacket(packet []byte, passedOn bool) {
	e.at.packet, e.at.passedOn = packet, passedOn
	h := &e.at.header
	frame, reason := e.cfg.Medium.Strip(packet, e.cfg.Local, e.cfg.Sifted)
	var t wire.Type
	var id wire.SessionID
	if reason == wire.ReasonOK {
		t, id, reason = wire.Peek(frame)
	}
	if reason != wire.ReasonOK {
		e.refuse(reason)
		return
	}
	var x entry
	var at *slot
	if t != wire.Hello {
		if x, at = e.table.lookup(id); x == nil && e.passesOn(t, id) {
			return
		}
	}
	payload, reason := h.Open(at.sealerOf(t), frame)
	if reason != wire.ReasonOK {
		e.refuse(reason)
		return
	}
	switch {
	case x != nil:
		if !x.receive(h, payload) {
			e.count[StaleEpoch]++
			e.onStranger(h)
		}
	case h.Type == wire.Hello:
		if !e.departs {
			e.onHello(h, payload)
		}
	case h.Type == wire.Reset:
		e.onUnmatchedReset(h, payload)
	default:
		e.count[UnknownSession]++
		e.onStranger(h)
	}
}

// passesOn passes the packet at hand on if its frame, of a type, names a session of
// another queue.
func (e *Engine) passesOn(t wire.Type, id wire.SessionID) bool {
	if t == wire.Reset {
		return false // one of a node that does not know the session names none
	}
	q := int(id.Queue())
	return q != e.cfg.Queue && e.passOn(q)
}

// passOn hands the packet at hand to the engine of another queue. It returns false when
// there is none, or the packet has come from another engine already.
func (e *Engine) passOn(queue int) bool {
	if e.at.passedOn || !e.group.pass(e, e.at.packet, queue) {
		return false
	}
	e.count[HandedOver]++
	return true
}

// source returns the source of the packet at hand, which Strip has accepted. It is valid
// until the next packet.
func (e *Engine) source() *wire.Source {
	e.at.from = e.cfg.Medium.Source(e.at.packet)
	return &e.at.from
}

// refuse counts a packet that the codec rejects.
func (e *Engine) refuse(r wire.Reason) { e.count[refusedBase+Counter(r)]++ }

// onStranger tells the sender of a frame that its session does not exist here. Only a
// frame that asks for an answer gets one, so two nodes cannot keep resetting each other.
// The answer does not say whether the id or the epoch is unknown: that would help to
// guess the other.
func (e *Engine) onStranger(h *wire.Header) {
	if !e.departs && (h.Type == wire.Request || h.Type == wire.Probe) {
		e.reply(e.pathTo(e.source(), wire.Class{}), func(b []byte) int {
			return session.Strange(b, h, e.cfg.Lane, wire.ResetUnknownSession)
		})
	}
}

// onUnmatchedReset looks for the session that a reset means. The sender of the reset
// could not know the initiator's session id, so it quotes its own, and the epoch.
func (e *Engine) onUnmatchedReset(h *wire.Header, payload []byte) {
	var m wire.ResetMsg
	if m.Parse(payload) != wire.ReasonOK {
		e.count[Invalid]++
		return
	}
	if c := e.begun[atTarget{m.Session, h.Epoch}]; c != nil && c.sealer == nil && c.ini.Names(m.Session, h.Epoch) {
		c.receive(h, payload)
		return
	}
	if e.at.passedOn || !e.group.spread(e.at.packet, e) { // the session may be another queue's
		e.count[UnknownSession]++
	}
}

// reply sends one frame outside any session. Without a buffer it is dropped:
// the node that asked will ask again.
func (e *Engine) reply(link path, write func(b []byte) int) {
	b := e.port.Buffer()
	if b == nil {
		return
	}
	e.transmit(&slot{path: link}, b, write(b[link.Len():]))
	e.sent++
}

// pathTo returns the path back to the source of a packet, for answers of a class.
func (e *Engine) pathTo(src *wire.Source, c wire.Class) path {
	return e.pathOf(src.Reply(c))
}

// sessionOf reads the session id of a frame that this engine has written.
func sessionOf(frame []byte) wire.SessionID {
	return wire.SessionID(binary.LittleEndian.Uint32(frame[2:]))
}
