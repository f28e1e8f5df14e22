// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Inflow takes the messages of one session. Between Begin and End it takes those of a
// frame, one after the other: a message that begins is admitted, and then its parts are
// put in their order.
type Inflow interface {
	// InProgress returns how many bytes the message has that has begun and is not whole,
	// and how many it lacks; zeros if there is none.
	InProgress() (has, lacks uint64)
	Begin()
	// Admit takes a place for a message that begins, and reports whether there was one.
	// The first part follows.
	Admit(m *wire.Message) bool
	// Put takes the next part of the message in progress, or the first one of the message
	// that was admitted.
	Put(part []byte) error
	// Drop drops the message in progress.
	Drop()
	End() error
	// Close says that nothing more will come: a message in progress is dropped. It may be
	// called again.
	Close()
}
