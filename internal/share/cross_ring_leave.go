// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The end of NewCrossRing can be gone on with by another process, of which the other side
// notices nothing: packets wait in the rings meanwhile, and what finds no room is lost.

// CrossRingState is what an end leaves to the next process in addition to its
// descriptors. The positions in the shared memory would not do: the other side can write
// there.
type CrossRingState struct {
	Put   uint64 // packets put in
	Taken uint64 // packets taken out
}

// Halt makes Run return, and leaves the other side's packets in the ring from then on.
// Send still works.
func (f *CrossRing) Halt() {
	f.ended.Store(true)
	_ = f.file.SetReadDeadline(time.Unix(1, 0))
}

// Leave closes an end that was halted, when Run has returned, and returns its positions
// and copies of the descriptors of its socket and memory, which are the caller's.
func (f *CrossRing) Leave() (s CrossRingState, fds [2]int, err error) {
	f.mu.Lock()
	if f.closed || f.runs {
		f.mu.Unlock()
		return s, fds, errors.New("the cross ring is closed, or runs still")
	}
	s = CrossRingState{Put: f.out.at, Taken: f.in.at}
	fds[0], err = unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		if fds[1], err = unix.FcntlInt(uintptr(f.mem.FD()), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			CloseAll(fds[:1])
		}
	}
	f.mu.Unlock()
	if err == nil {
		_ = f.Close() // its copies stay
	}
	return s, fds, err
}

// GoOn is the end that Leave has left. The descriptors are the cross ring's from here on,
// also if there is an error.
func (s CrossRingState) GoOn(socket, memory int) (*CrossRing, error) {
	f, err := crossRingOf(socket, memory, 0)
	if err != nil {
		return nil, err
	}
	f.out.at, f.in.at = s.Put, s.Taken
	return f, nil
}
