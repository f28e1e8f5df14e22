// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// OnAnswer has a function called, on the engine's thread, with what the guest says of
// operations that it was to execute: see Arrivals.Answer. The answer is valid during the
// call, and may change meanwhile.
func (f *HostRing) OnAnswer(answered func(session, ticket uint64, answer []byte) error) {
	f.answered = answered
}

// answer takes such an answer.
func (f *HostRing) answer(x *engine.Entry) (cost int) {
	b, ok := f.answerIn(x)
	switch {
	case !ok || len(b) > mostAnswer || f.answered == nil:
		f.fail(fmt.Errorf("submission ring: an answer of %d bytes: want one in the entry or the arena, of at most %d",
			x.Count, mostAnswer))
	default:
		if err := f.answered(x.Key, x.Cookie, b); err != nil {
			f.fail(fmt.Errorf("submission ring: %w", err))
		}
	}
	return engine.EntryCost + len(b)
}

// answerIn returns the bytes of an answer or a reply: in the entry or the arena.
func (f *HostRing) answerIn(x *engine.Entry) (b []byte, ok bool) {
	if x.Flags&engine.FlagOutside != 0 {
		return f.part(placesOf(x).Operand, uint64(x.Count))
	}
	return x.Inline[:min(x.Count, engine.InlineLen)], x.Count <= engine.InlineLen
}

// OnReply has a function called, on the engine's thread, with the replies of the guest's
// functions: see Arrivals.Reply. The reply is valid during the call, and may change
// meanwhile.
func (f *HostRing) OnReply(replied func(session, psn uint64, status wire.Status, r *wire.Reply) error) {
	f.replied = replied
}

// reply takes such a reply.
func (f *HostRing) reply(x *engine.Entry) (cost int) {
	b, ok := f.answerIn(x)
	switch {
	case !ok || f.replied == nil:
		f.fail(fmt.Errorf("submission ring: a reply of %d bytes: want one in the entry or the arena", x.Count))
	default:
		f.said = wire.Reply{Kind: wire.ReplyKind(x.Opcode), Length: uint32(x.Offset), Bytes: b}
		if err := f.replied(x.Key, x.Cookie, wire.Status(x.Datatype), &f.said); err != nil {
			f.fail(fmt.Errorf("submission ring: %w", err))
		}
	}
	return engine.EntryCost + len(b)
}
