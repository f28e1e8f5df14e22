// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Inflow takes the messages of one session. Between Begin and End it takes the records of
// a frame, one after the other: a message that begins is admitted and its first part is
// put, then further parts are put in their order. The executor has checked that they
// follow one another, and that no message gets more bytes than it lacks.
type Inflow interface {
	// InProgress returns how many bytes the message in progress has, which has begun and
	// is not whole, and how many it lacks; zeros if there is none.
	InProgress() (has, lacks uint64)
	Begin()
	// Admit takes a place for a message that begins, and reports whether there was one.
	// If there was none, nothing has changed: End follows, and the frame resumes at the
	// same message when the owner of the inflow says that there may be room.
	Admit(m *wire.Message) bool
	// Fits reports whether there is room for n more bytes of the message in progress,
	// which has begun in an earlier record. If there is none, it is as after Admit.
	Fits(n int) bool
	// Put takes the next part of the message in progress, or the first one of the message
	// that was admitted.
	Put(part []byte)
	// Combine takes a tagged atomic that was admitted, in place of Put, and returns how
	// it ended, if that is known. The values before go to result, if there are any.
	Combine(m *wire.Message, result []byte) wire.Status
	// Drop drops the message in progress. Like Put, it is called between Begin and End.
	Drop()
	End()
	// Close is called when nothing more will come: a message in progress is dropped. It
	// may be called again.
	Close()
}
