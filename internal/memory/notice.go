// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// tell executes a notice, number i of its frame. All records before it have been
// executed, in this frame and in earlier ones, so everything that the notice is about can
// be seen in memory. If one of the operation's records failed, there is nothing to tell.
func (m *Memory) tell(i int) wire.Status {
	n := m.records.Notice()
	if n.Covers > m.lasting(i) {
		return wire.StatusNotExecuted
	}
	m.notice, m.noticed = n, true
	return wire.StatusOK
}

// lasting returns how many records before number i of the frame have succeeded in a row,
// with those of earlier frames.
func (m *Memory) lasting(i int) uint32 {
	if m.bad >= 0 {
		return uint32(i - 1 - m.bad)
	}
	return uint32(min(uint64(m.streak)+uint64(i), math.MaxUint32))
}

// Streak returns how many records of the session have succeeded in a row up to the end of
// the last frame.
func (m *Memory) Streak() uint32 { return m.streak }

// Notice returns the notice of the last frame, if there is one and the operation that it
// is about has succeeded.
func (m *Memory) Notice() (n wire.Notice, ok bool) { return m.notice, m.noticed }
