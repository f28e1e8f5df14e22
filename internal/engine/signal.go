// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// A write with a signal that takes several frames has the signal in each record, so that
// the target checks it before it changes anything, and applies it with the last one. That
// one may run only if all others have. In a session that keeps an order this needs no
// round trip, if the write names the registrations that it means: a record fails only
// when one of them has ended, and then all that follow fail.

// signalWaits reports whether the last part of such a write cannot be sent yet, since the
// others have to be answered first: those in flight in another session or without order,
// or that may meet another registration than the last part.
func (f *flight) signalWaits(c *conn) bool {
	if f.sent == 0 || f.whole() || f.pending == 0 || f.elements()-f.sent > uint64(c.r.e.cfg.MTU) {
		return false
	}
	return f.by != c.unit || f.Incarnation == 0 || wire.SignalAt(f.signal()).Incarnation == 0
}
