// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrNoneLendable means that no queue can be lent now.
var ErrNoneLendable = errors.New("no queue can be lent now")

// Loan is a queue that another program drives. A holder of the descriptors can put any
// frame on the wire, and sees the frames that arrive on this queue, and no others.
type Loan struct {
	Parts  Parts
	Socket int // descriptors, copied for the borrower; -1 when they are closed
	Memory int

	queue *lendable
	once  sync.Once
	mu    sync.Mutex // guards Socket and Memory against Close
}

// Lend takes a queue out of this process, to be driven by another one: see Adopt.
func (i *Interface) Lend() (*Loan, error) {
	count := map[LendableState]int{}
	spares := i.lendables()
	for _, s := range spares {
		state := s.claim()
		if state == LendableFree {
			return s.lend()
		}
		count[state]++
	}
	return nil, fmt.Errorf("%s: %w: of %d queues to lend, %d are lent, and %d were given back but are open "+
		"still in programs to which a borrower has passed them",
		i.Name(), ErrNoneLendable, len(spares), count[LendableLent], count[LendableKept])
}

// claim makes the queue one that is lent, if it is free, and returns its state before.
func (s *lendable) claim() (before LendableState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before = s.state; before == LendableFree && s.q == nil {
		return LendableKept // the interface is closed
	}
	if before == LendableFree {
		s.state = LendableLent
		s.q.Wake()
	}
	return before
}

// lend takes a queue that was claimed from its goroutine.
func (s *lendable) lend() (*Loan, error) {
	select {
	case <-s.stopped:
	case <-s.done:
		return nil, ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.q
	if q == nil {
		return nil, ErrClosed // meanwhile
	}
	s.q = nil
	l := &Loan{Parts: q.partsOf(s.i.index, s.o), Socket: -1, Memory: -1, queue: s}
	var err, err2 error
	l.Socket, err = unix.FcntlInt(uintptr(q.sock.FD()), unix.F_DUPFD_CLOEXEC, 0)
	l.Memory, err2 = unix.FcntlInt(uintptr(q.umem.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err = errors.Join(err, err2, q.close()); err != nil {
		l.Close()
		go l.Return() // not before s.mu is free
		return nil, fmt.Errorf("%s: lending a queue: %w", s.i.Name(), err)
	}
	s.lends++
	s.loan = l
	return l, nil
}

// Passed closes what only the borrower needs, when it has its own. The socket stays, for
// the next user of the interface (Leave).
func (l *Loan) Passed() { l.closeFiles(&l.Memory) }

// Close closes the descriptors. The borrower keeps the queue: Return would take it back.
func (l *Loan) Close() { l.closeFiles(&l.Socket, &l.Memory) }

func (l *Loan) closeFiles(fds ...*int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fd := range fds {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// copySocket returns another descriptor of the socket, which is the caller's.
func (l *Loan) copySocket() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return unix.FcntlInt(uintptr(l.Socket), unix.F_DUPFD_CLOEXEC, 0)
}

// Return takes the queue back when the other program has ended: no frame goes there any
// more, and the queue is bound anew as soon as no process has it open. It closes the
// descriptors.
func (l *Loan) Return() {
	l.once.Do(func() {
		s := l.queue
		_ = s.i.program.ClearSocket(s.number, lane) // the interface may be closed
		l.Close()
		s.mu.Lock()
		s.state, s.loan = LendableKept, nil
		s.mu.Unlock()
		s.back <- struct{}{} // there is room: a queue is lent once at a time
	})
}

// LendableQueue describes a queue that can be lent.
type LendableQueue struct {
	Number int
	State  LendableState
	Lends  uint64 // how often it was lent
}

// Spares describes the queues that can be lent.
func (i *Interface) Spares() []LendableQueue {
	all := []LendableQueue{}
	for _, s := range i.lendables() {
		s.mu.Lock()
		all = append(all, LendableQueue{s.number, s.state, s.lends})
		s.mu.Unlock()
	}
	return all
}

// count implements minder.
func (s *lendable) count(all map[string]uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all["queues_lent"] += s.lends
	return nil
}
