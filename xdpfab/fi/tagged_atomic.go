// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An atomic on the buffer of a tagged receive is a message of one record, which is in one
// frame: so it is combined as a whole or not at all, whatever becomes of its session.

// Causes of tagged atomics that have failed.
var (
	errBeyondReceive = fmt.Errorf("%w: here, of the buffer of the receive that the tag matched; post a longer one",
		ErrOutOfBounds)
	errBeyondFrame = fmt.Errorf(
		"%w: one frame has to carry a tagged atomic, and the peer's MTU is smaller; post it in parts", ErrTooMany)
)

// mostTagged returns the most elements of a tagged atomic: as many as a frame of the
// interface's MTU carries in any encapsulation. The MTU of the peer's has to be as large.
func (d *Domain) mostTagged(verb wire.Verb, op atomic.Op, dt atomic.Datatype) uint32 {
	return wire.MaxTagged(verb, uint8(op), uint8(dt), d.node.Dev.MTU()-wire.MaxOverhead-wire.HeaderLen)
}

// checkTagged returns an error for an operation of a form, otherwise valid, whose target
// cannot be the buffer of a receive.
func (d *Domain) checkTagged(verb wire.Verb, m *Msg, count uint32) error {
	most := d.mostTagged(verb, m.Op, m.Datatype)
	switch {
	case m.RMA != nil:
		return fmt.Errorf("xdpfab: %d extents for a tagged atomic: its target is the buffer of one receive, at "+
			"Offset: want no RMA: %w", len(m.RMA), ErrNotImplemented)
	case m.Incarnation != 0:
		return fmt.Errorf("xdpfab: incarnation %#x for a tagged atomic: receives have none: want 0: %w", m.Incarnation,
			ErrNotImplemented)
	case count > most:
		return fmt.Errorf("xdpfab: %d elements of %v for a tagged atomic: want at most %d, as one frame carries it, "+
			"post them in parts: %w", count, m.Datatype, most, ErrTooMany)
	case m.Offset+uint64(count)*uint64(m.Datatype.Size()) < m.Offset:
		return fmt.Errorf(
			"xdpfab: offset %#x for a tagged atomic of %d elements: want it within the buffer of a receive: %w",
			m.Offset, count, ErrOutOfBounds)
	}
	return nil
}
