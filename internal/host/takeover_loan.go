// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
)

// A program that borrowed a queue keeps driving it while another process takes its host's
// place. The new host gets a descriptor of the queue's socket, which it needs for the XDP
// program and for taking the queue back, and the host's end of the cross ring.

// loanState is what a guest has borrowed.
type loanState struct {
	Queue          int
	Ferry          share.CrossRingState
	Socket, Memory int // of the cross ring
	Endpoints      []uint16
	Ways           []share.Follow // as the borrower knows them
}

// quiet silences the guests that borrowed a queue, and dismisses those that do not take
// what they are being told before the deadline. It returns the others.
func quiet(guests []*Guest, deadline time.Time) []*Guest {
	return slices.DeleteFunc(guests, func(g *Guest) bool {
		if g.loan == nil || g.loan.quiet(deadline) {
			return false
		}
		g.evictStopped(errors.New("xdpfab: the program does not take what it is told"))
		return true
	})
}

// quiet ends tell, and reports whether it has ended in time.
func (x *loan) quiet(deadline time.Time) bool {
	x.hush.Do(func() { close(x.done) })
	select {
	case <-x.silenced:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
}

// loanState returns what the guest has borrowed, once it makes no more calls.
func (g *Guest) loanState() *loanState {
	s := &loanState{Queue: g.loan.queue}
	for n := range g.endpoints {
		s.Endpoints = append(s.Endpoints, n)
	}
	g.loan.mu.Lock()
	defer g.loan.mu.Unlock()
	for a, w := range g.loan.ways {
		s.Ways = append(s.Ways, share.Follow{Addr: a, Link: w.link})
	}
	return s
}

// haltLoan leaves what the borrower passes on to the next process.
func (g *Guest) haltLoan() {
	if x := g.loan; x != nil {
		x.crossRing.Halt()
		x.tasks.Wait()
	}
}

// leaveLoan adds the cross ring, after its last packet has left, and leaves the queue.
func (h *Handover) leaveLoan(g *Guest, s *loanState) error {
	if s == nil {
		return nil
	}
	at, fds, err := g.loan.crossRing.Leave()
	if err != nil {
		return fmt.Errorf("ferry of queue %d: %w", s.Queue, err)
	}
	s.Ferry, s.Socket, s.Memory = at, h.own(fds[0]), h.own(fds[1])
	g.loan.leaves = true
	return nil
}

// addDevice adds what the interface leaves. File descriptors become places.
func (h *Handover) addDevice(host *Host) error {
	from, is := host.n.Dev.(node.Lender)
	if !is {
		return nil
	}
	left, err := from.Leave()
	if err != nil {
		return err
	}
	for name, fd := range left.Program {
		left.Program[name] = h.own(fd)
	}
	for i := range left.Spares {
		if s := &left.Spares[i]; s.Socket >= 0 {
			s.Socket = h.own(s.Socket)
		}
	}
	h.State.Device = left
	return nil
}

// device returns what the interface has left, with file descriptors that stay the
// handover's.
func (h *Handover) device() (*port.Inheritance, error) {
	if h.State.Device == nil {
		return nil, nil
	}
	left := *h.State.Device
	var err error
	if left.Program, err = h.files(left.Program); err != nil {
		return nil, err
	}
	left.Spares = slices.Clone(left.Spares)
	for i := range left.Spares {
		if s := &left.Spares[i]; s.State == port.SpareLent {
			if s.Socket, err = h.file(s.Socket); err != nil {
				return nil, err
			}
		}
	}
	return &left, nil
}

// files returns file descriptors that have names, and stay the handover's.
func (h *Handover) files(at map[string]int) (map[string]int, error) {
	files := map[string]int{}
	for name, i := range at {
		var err error
		if files[name], err = h.file(i); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// file returns a file descriptor, which stays the handover's.
func (h *Handover) file(at int) (int, error) {
	if at < 0 || at >= len(h.fds) {
		return -1, fmt.Errorf("file descriptor %d of %d is missing", at, len(h.fds))
	}
	return h.fds[at], nil
}

// restoreLoan gives a guest the queue that it has. Nothing crosses over until startLoan,
// and the queue is left to the former host if it does not come to that.
func (h *Handover) restoreLoan(g *Guest, s *loanState) error {
	from, is := g.h.n.Dev.(node.Lender)
	if !is {
		return fmt.Errorf("queue %d is lent, and this domain has no queues: %w", s.Queue, errno.NotImplemented)
	}
	g.h.Mu.Lock()
	err := g.mayBorrow()
	if err == nil {
		g.queue.Store(&s.Queue)
	}
	g.h.Mu.Unlock()
	if err != nil {
		return err
	}
	l, err := from.Inherited(s.Queue)
	if err != nil {
		return err
	}
	f, err := h.crossRing(s)
	if err != nil {
		return err
	}
	x := newLoan(l, s.Queue, f)
	x.leaves = true
	g.takeLoan(x)
	for _, n := range s.Endpoints {
		if _, err := g.allot(context.Background(), share.Number{Number: int(n), Count: 1}); err != nil {
			return err
		}
	}
	for _, f := range s.Ways {
		if _, err := g.follow(context.Background(), f); err != nil {
			return err
		}
	}
	return nil
}

// cross ring returns the end of the cross ring that a former host had.
func (h *Handover) crossRing(s *loanState) (*share.CrossRing, error) {
	socket, err := h.copyOf(s.Socket)
	if err != nil {
		return nil, err
	}
	memory, err := h.copyOf(s.Memory)
	if err != nil {
		share.CloseAll([]int{socket})
		return nil, err
	}
	return s.Ferry.GoOn(socket, memory)
}
