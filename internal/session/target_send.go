// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Due reports whether Emit has something to write.
func (t *Target) Due() bool {
	return t.toSend != 0 || t.infoDue || t.nakDue || t.echoDue || t.resetDue != 0
}

// Emit writes the next frame that is due, without its seal, into b and returns its
// length, or 0 when none is due. The answers to a burst leave in psn order: the initiator
// takes a later answer without an earlier one as a sign of loss.
func (t *Target) Emit(b []byte) int {
	switch {
	case t.toSend != 0:
		return t.emitAnswer(b)
	case t.nakDue:
		return t.emitBare(b, wire.Nak)
	case t.infoDue, t.echoDue:
		return t.emitBare(b, wire.Ack)
	case t.resetDue != 0:
		return t.emitReset(b)
	}
	return 0
}

// Answer writes the answer that is due into b and returns the length of the frame, if
// exactly one answer is due and it has results. Otherwise it returns 0 and does nothing:
// either Emit has to choose, or one frame can say more when the burst is over.
func (t *Target) Answer(b []byte) int {
	if t.toSend == 0 || t.toSend&(t.toSend-1) != 0 || t.cache[bits.TrailingZeros64(t.toSend)].buf == nil {
		return 0
	}
	return t.emitAnswer(b)
}

// header fills the fields that tell the initiator where the target stands.
func (t *Target) header(ty wire.Type) wire.Header {
	t.infoDue, t.nakDue = false, false
	h := wire.Header{
		Type: ty, Session: t.remote, Epoch: t.epoch, Ack: t.expected - 1,
		Credit: t.credit, Lane: t.local.Lane(),
	}
	// the sack cannot say that the next one is here
	early := (t.heldMask | t.ahead | t.away) &^ (1 << (t.expected & slotMask))
	if early != 0 && (t.handed == 0 || t.gap(t.expected)) {
		h.Sack = t.sack(early)
	}
	if t.busy() && ty != wire.Reset {
		h.Flags, h.Ops = wire.FlagBusy, t.partly // of a response, ops means itself
	}
	return h
}

// emitAnswer sends the answer of the lowest psn that is due. Adjacent clean
// answers travel as one ack, which repeats the clean ones before it; but no ack covers a
// frame that ran ahead, so its clean answer is a response without results.
func (t *Target) emitAnswer(b []byte) int {
	base := t.freed + 1
	psn := base + uint32(bits.TrailingZeros64(bits.RotateLeft64(t.toSend, -int(base&slotMask))))
	a := &t.cache[psn&slotMask]
	if a.buf == nil && t.ahead&(1<<(psn&slotMask)) == 0 {
		return t.emitClean(b, psn)
	}
	t.toSend &^= 1 << (psn & slotMask)
	h := t.header(wire.Response)
	h.PSN, h.Ops, h.Flags = psn, a.ops, h.Flags|a.flags
	h.Put(b)
	return wire.HeaderLen + copy(b[wire.HeaderLen:], a.buf[:a.n])
}

// emitClean sends an ack for the run of clean answers around psn.
func (t *Target) emitClean(b []byte, psn uint32) int {
	first, last := psn, psn
	for wire.Diff(first-1, t.freed) > 0 && t.cache[(first-1)&slotMask].buf == nil {
		first--
	}
	for wire.Diff(last+1, t.expected) < 0 && t.cache[(last+1)&slotMask].buf == nil {
		last++
	}
	for p := first; p != last+1; p++ {
		t.toSend &^= 1 << (p & slotMask)
	}
	h := t.header(wire.Ack)
	h.PSN = first
	if last != t.expected-1 { // an older view: without the sack, which is relative to ack
		h.Ack, h.Sack, h.Flags, h.Ops = last, 0, 0, 0
		t.infoDue = t.heldMask|t.ahead|t.away != 0 || t.waits
	}
	h.Put(b)
	return wire.HeaderLen
}

func (t *Target) emitBare(b []byte, ty wire.Type) int {
	h := t.header(ty)
	h.PSN = t.expected // an ack from expected to expected-1 is an empty run
	if ty == wire.Ack && t.echoDue {
		zeros := t.echoPad
		h.Flags, h.PSN, t.echoDue, t.echoPad = h.Flags|wire.FlagEcho, t.echo, false, 0
		h.Put(b)
		clear(b[wire.HeaderLen:][:zeros])
		return wire.HeaderLen + zeros
	}
	h.Put(b)
	return wire.HeaderLen
}

func (t *Target) emitReset(b []byte) int {
	h := t.header(wire.Reset)
	ran := t.Ran() // what is held never runs
	h.Sack = ran.Early
	h.Put(b)
	m := wire.ResetMsg{Session: uint32(t.local), PSN: ran.PSN + 1, Reason: t.resetDue}
	m.Put(b[wire.HeaderLen:])
	t.resetDue = 0
	return wire.HeaderLen + wire.ResetLen
}
