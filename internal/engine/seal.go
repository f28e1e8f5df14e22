// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A frame is sealed by the sealer of its session, in Engine.transmit, the last step
// before the port. It is opened by the same in Engine.onPacket, before anything that it
// says is believed. The header, read before that, only says which session to ask: damage
// or a lie leads to a sealer that does not open the frame, and so to its end.
//
// The XDP program has the same step for the sessions that it executes: open_frame and
// seal_frame in internal/resident/headers/seal.h. It knows the checksum alone.

// Sealing is what both sides know of a session when they make its sealer: enough to
// derive keys that no other session has. A session whose sealer is not the checksum has
// these limits:
//
//   - Hellos, their answers, and the resets of a node that does not know a session have
//     the checksum, since there is no key for them yet; a hello can prove an
//     authorization key. The session believes neither such a reset nor an ack that rides
//     in another session's frame. So if its target restarts, its initiator waits for the
//     give-up time.
//   - Neither hellos nor features say which sealers a node has: both nodes must be
//     configured alike.
//   - If it moves to another process, it gets a new sealer, which does not know how far
//     the former one has counted.
//   - No XDP program can execute it: Config.Serve must not choose such an executor.
type Sealing struct {
	Initiates         bool   // this side begins the session
	Initiator, Target uint32 // the session's id at each side
	Epoch             uint32
	Nonce             uint64       // of the hello
	Key               *session.Key // that both sides have proven; nil for none
}

func (e *Engine) sealerFor(s Sealing) wire.Sealer {
	if e.cfg.Sealer == nil {
		return nil
	}
	return e.cfg.Sealer(s)
}

// seal gives a session its sealer, once the target has accepted it.
func (c *conn) seal() {
	at := c.atTarget()
	c.sealer = c.r.e.sealerFor(Sealing{Initiates: true, Initiator: uint32(c.slot.id), Target: at.id, Epoch: at.epoch,
		Nonce: c.ini.Nonce(), Key: c.r.origin.key})
}

func (t *target) seal() {
	t.sealer = t.e.sealerFor(Sealing{Initiator: t.remote, Target: uint32(t.slot.id), Epoch: t.epoch,
		Nonce: t.nonce, Key: t.key})
}

// keyless reports whether frames of a type have the checksum though the session has a
// sealer: those that make a session, or ask about it.
func keyless(t wire.Type) bool { return t == wire.Hello || t == wire.HelloAck }

// sealerOf returns the sealer of a frame of a type that comes for the slot's session, or
// leaves by it. A nil slot is no session.
func (s *slot) sealerOf(t wire.Type) wire.Sealer {
	if s == nil || s.sealer == nil || keyless(t) {
		return nil
	}
	return s.sealer
}
