// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/xsk"
)

// Programs keep driving the queues that were lent to them when an interface passes from
// one process to the next: the next one has the sockets, too.

// inheritedSpares are the queues that the former user could lend.
type inheritedSpares struct {
	Spares []LeftLendable
}

// LeftLendable is a queue that could be lent.
type LeftLendable struct {
	LendableQueue
	Socket int // descriptor, if it is lent; otherwise -1
}

// leave implements minder.
func (s *lendable) leave(h *Inheritance) error {
	left, err := s.left()
	if err != nil {
		return fmt.Errorf("queue %d: %w", s.number, err)
	}
	h.Spares = append(h.Spares, left)
	return nil
}

func (s *lendable) left() (LeftLendable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := LeftLendable{LendableQueue{s.number, s.state, s.lends}, -1}
	if s.state != LendableLent {
		return left, nil
	}
	if s.loan == nil {
		return left, fmt.Errorf("it is being lent: %w", ErrNoneLendable)
	}
	var err error
	left.Socket, err = s.loan.copySocket()
	return left, err
}

// closeSockets closes the descriptors.
func (h *inheritedSpares) closeSockets() {
	for n := range h.Spares {
		if fd := &h.Spares[n].Socket; *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// copySockets fills in a copy of others, with what f makes of each descriptor in its
// place.
func (h *inheritedSpares) copySockets(from *Inheritance, f func(fd int) (int, error)) (err error) {
	h.Spares = slices.Clone(from.Spares)
	for n := range h.Spares {
		if s := &h.Spares[n]; s.State == LendableLent {
			if s.Socket, err = f(s.Socket); err != nil {
				return fmt.Errorf("queue %d: %w", s.Number, err)
			}
		}
	}
	return nil
}

// mayLend reports an error if a queue that is lent is not among those behind the queues
// in use that can be.
func (o *Options) mayLend(queues int) error {
	switch {
	case o.Lend < 0:
		return fmt.Errorf("%d queues to lend: want 0 for none, or more", o.Lend)
	case o.Inherit == nil:
		return nil
	}
	for _, s := range o.Inherit.Spares {
		if s.State == LendableLent && (s.Number < queues || s.Number >= queues+o.Lend) {
			return fmt.Errorf("queue %d is lent to a program, and is not among those to lend any more, with %d queues "+
				"in use and %d to lend behind them: want as many as before, or wait until it is given back: %w",
				s.Number, queues, o.Lend, xsk.ErrNoQueue)
		}
	}
	return nil
}

// of returns what was left of a queue. h may be nil.
func (h *Inheritance) of(number int) LeftLendable {
	if h != nil {
		for _, s := range h.Spares {
			if s.Number == number {
				return s
			}
		}
	}
	return LeftLendable{Socket: -1}
}

// inherit makes the queue what it was for the former user, and reports whether somebody
// else has it. Its frames go to the borrower as soon as the XDP program is in place.
func (s *lendable) inherit(left LeftLendable) (is bool, err error) {
	s.lends = left.Lends
	if left.State != LendableLent {
		return left.State == LendableKept, nil
	}
	l := &Loan{Parts: Parts{Number: s.number, IfIndex: s.i.index}, Memory: -1, queue: s}
	if l.Socket, err = unix.FcntlInt(uintptr(left.Socket), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return false, err
	}
	s.loan, s.state = l, LendableLent // Close closes it from here on
	return true, s.i.program.SetSocket(s.number, lane, l.Socket)
}

// Inherited returns the loan of a queue that another program has since before Open.
func (i *Interface) Inherited(number int) (*Loan, error) {
	for _, s := range i.lendables() {
		s.mu.Lock()
		l := s.loan
		s.mu.Unlock()
		if s.number == number && l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%s: queue %d is not lent: %w", i.Name(), number, ErrNoneLendable)
}
