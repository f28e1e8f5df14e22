// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Signal is the change of one 64-bit word that [Peer.WriteSignal] makes once the bytes
// are there.
type Signal struct {
	Region RemoteRegion
	Index  uint64    // of the word in the region, in words
	Op     atomic.Op // atomic.Sum adds to the word, atomic.Write sets it; others of the base form do but Min
	Value  uint64
}

// check refuses a signal that no peer could apply, or that was not filled in. The zero Op
// is atomic.Min, which would leave most words as they are, and whoever waits waiting.
func (s Signal) check() error {
	switch {
	case s.Region == RemoteRegion{}:
		return errno.Refuse(ErrNoKey, "xdpfab: Signal.Region is a zero value: want one that Peer.Lookup has found")
	case s.Op == atomic.Min:
		return errno.Refuse(ErrOpNotSupported,
			"xdpfab: Signal.Op is min, or left out: want another one, such as atomic.Sum or atomic.Write")
	case !atomic.Valid(atomic.Base, s.Op, atomic.Uint64):
		return errno.Refuse(ErrOpNotSupported,
			"xdpfab: Signal.Op is %v: want an operation of Remote.Apply on uint64, such as atomic.Sum or atomic.Write",
			s.Op)
	case s.Index > math.MaxUint64/8 || s.Region.Size != 0 && s.Index >= s.Region.Size/8:
		return fmt.Errorf("xdpfab: signal in word %d of %s, which has %d words of 8 bytes: %w", s.Index,
			named(s.Region), s.Region.Size/8, beyond(s.Region.Size/8))
	}
	return nil
}

// WriteSignal does what [Peer.Write] does, and then changes a word of the peer's memory.
// A program that sees the new word, for example by [Wait], finds all of b. The write and
// the signal are one operation: both run, once, or neither does. The word may be in
// another region. In OpenSHMEM this is put_signal: atomic.Write is SIGNAL_SET, and
// atomic.Sum is SIGNAL_ADD.
//
// A peer with an earlier release refuses it with ErrOpNotSupported. So does a program
// behind a daemon for memory that it alone has mapped, as it has that of mr.Alloc,
// mr.File and mr.Adopt: use Write there, and then Add.
func (p *Peer) WriteSignal(ctx context.Context, r RemoteRegion, offset uint64, b []byte, s Signal) error {
	if err := s.check(); err != nil {
		return errno.Unsent(err)
	}
	signal := wire.Signal{Key: s.Region.Key, Offset: s.Region.Base + 8*s.Index, Incarnation: s.Region.Incarnation,
		Op: uint8(s.Op), Datatype: uint8(atomic.Uint64), Operand: s.Value}
	err := p.transfer(ctx, r, offset, len(b),
		calls.Call{Verb: wire.VerbSignal, Op: uint8(atomic.Write), Operand: b, Signal: &signal})
	if oe, is := errors.AsType[*OpError](err); is && errors.Is(err, ErrOpNotSupported) {
		oe.Cause = errno.Refuse(ErrOpNotSupported, "its program alone has mapped this memory, behind a daemon, or the "+
			"peer is of an older release: have it serve memory of NewRegion or mr.Memfd; or Write, and then Add")
	}
	return err
}
