// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// One process after the other can use an interface while programs keep driving the queues
// that were lent to them: the XDP program is replaced in one step, and the next one has
// their sockets, too.

// Inheritance is what an interface leaves to the next user, in this process or another.
type Inheritance struct {
	Program bpf.Files // descriptors of the attached XDP program
	Spares  []LeftLendable
}

// LeftLendable is a queue that could be lent.
type LeftLendable struct {
	LendableQueue
	Socket int // descriptor, if it is lent; otherwise -1
}

// Leave returns what the next user of the interface needs. From then on Close leaves the
// XDP program attached, until somebody takes its place or the descriptors are closed,
// and the sockets of lent queues in it. The descriptors are the caller's.
func (i *Interface) Leave() (*Inheritance, error) {
	files, err := i.program.Leave()
	if err != nil {
		return nil, fmt.Errorf("port: %s: %w", i.Name(), err)
	}
	h := &Inheritance{Program: files}
	for _, s := range i.spares {
		left, err := s.leave()
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("port: %s: queue %d: %w", i.Name(), s.number, err)
		}
		h.Spares = append(h.Spares, left)
	}
	return h, nil
}

// Reopens returns nil if the next user can open the interface as it is at present. This
// one may have outlived a change with which nobody can open it, itself included.
func (i *Interface) Reopens() error {
	now, err := i.resolver.LinkState()
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	as := nic.Interface{Name: now.Name, Driver: i.driver, MTU: now.MTU, Up: now.AdminUp}
	return as.Ready()
}

func (s *lendable) leave() (LeftLendable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := LeftLendable{LendableQueue{s.number, s.state, s.lends}, -1}
	if s.state != SpareLent {
		return left, nil
	}
	if s.loan == nil {
		return left, fmt.Errorf("it is being lent: %w", ErrNoSpare)
	}
	var err error
	left.Socket, err = s.loan.copySocket()
	return left, err
}

// Close closes the descriptors.
func (h *Inheritance) Close() {
	h.Program.Close()
	for n := range h.Spares {
		if fd := &h.Spares[n].Socket; *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// fits reports an error if a queue that is lent is not among those that can be. h may be
// nil.
func (h *Inheritance) fits(queues, lend int) error {
	if h == nil {
		return nil
	}
	for _, s := range h.Spares {
		if s.State == SpareLent && (s.Number < queues || s.Number >= queues+lend) {
			return fmt.Errorf("queue %d is lent, and of %d queues and %d to lend it is none of the latter: have as "+
				"many as before, or wait until it is given back: %w",
				s.Number, queues, lend, xsk.ErrNoQueue)
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

// Settle ends the time in which somebody else may have the interface again: Close
// detaches the XDP program from now on.
func (i *Interface) Settle() { i.program.Stay() }

// inherit makes the queue what it was for the former user, and reports whether somebody
// else has it. Its frames go to the borrower as soon as the XDP program is in place.
func (s *lendable) inherit(left LeftLendable) (is bool, err error) {
	s.lends = left.Lends
	if left.State != SpareLent {
		return left.State == SpareKept, nil
	}
	l := &Loan{Parts: Parts{Number: s.number, IfIndex: s.i.index}, Memory: -1, spare: s}
	if l.Socket, err = unix.FcntlInt(uintptr(left.Socket), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return false, err
	}
	s.loan, s.state = l, SpareLent // Close closes it from here on
	return true, s.i.program.SetSocket(s.number, lane, l.Socket)
}

// Inherited returns the loan of a queue that another program has since before Open.
func (i *Interface) Inherited(number int) (*Loan, error) {
	for _, s := range i.spares {
		s.mu.Lock()
		l := s.loan
		s.mu.Unlock()
		if s.number == number && l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("port: %s: queue %d is not lent: %w", i.Name(), number, ErrNoSpare)
}
