// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// transfer executes the remote read or write at hand, number i of its frame. Like an
// atomic it is checked before anything is changed: against all that is to follow, so that
// no part of an operation that is refused has an effect.
func (m *Memory) transfer(i int) wire.Status {
	rec := &m.rec
	var word signalled
	if rec.Verb == wire.VerbSignal {
		if status := m.findSignal(&word); status != wire.StatusOK {
			return status
		}
	}
	target, status := m.resolve(1, 1)
	if status != wire.StatusOK {
		return status
	}
	if rec.Verb == wire.VerbRead {
		value := m.value(i, len(target))
		if value == nil {
			return wire.StatusBadCount
		}
		atomic.ReadBytes(value, target)
	} else {
		atomic.WriteBytes(target, rec.Operand)
	}
	if rec.Verb == wire.VerbSignal && rec.Total == rec.Count {
		m.signal(&word)
	}
	m.applied(len(target)) // last: whoever it wakes looks for the signal
	return wire.StatusOK
}
