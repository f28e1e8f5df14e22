// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// A program that borrowed a queue keeps driving it while another process takes its host's
// place. The new host gets a descriptor of the queue's socket, which it needs for the XDP
// program and for taking the queue back, and the host's end of the cross ring.

// loanState is what a guest has borrowed.
type loanState struct {
	Queue          int
	CrossRing      share.CrossRingState
	Socket, Memory int // of the cross ring
	Endpoints      []uint16
	Ways           []share.Follow // as the borrower knows them
}

// quiet implements migratable: it ends tell.
func (x *loan) quiet(deadline time.Time) bool {
	x.hush.Do(func() { close(x.done) })
	select {
	case <-x.silenced:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
}

// note implements migratable.
func (x *loan) note(g *Guest, to *guestState) {
	s := &loanState{Queue: x.queue}
	for n := range g.endpoints {
		s.Endpoints = append(s.Endpoints, n)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for a, w := range x.ways {
		s.Ways = append(s.Ways, share.Follow{Addr: a, Link: w.link})
	}
	to.Loan = s
}

// halt implements migratable: what the borrower passes on is left to the next process.
func (x *loan) halt() {
	x.crossRing.Halt()
	x.tasks.Wait()
}

// leave implements migratable: it adds the cross ring, after its last packet has left,
// and leaves the queue.
func (x *loan) leave(h *Handover, to *guestState) error {
	s := to.Loan
	at, fds, err := x.crossRing.Leave()
	if err != nil {
		return fmt.Errorf("cross ring of queue %d: %w", s.Queue, err)
	}
	s.CrossRing, s.Socket, s.Memory = at, h.own(fds[0]), h.own(fds[1])
	x.leaves = true
	return nil
}

// resume implements migratable.
func (x *loan) resume(g *Guest) {
	x.leaves = false
	g.startLoan(x)
}

// giveBack implements heldState.
func (s *loanState) giveBack(host *Host) {
	if from, is := host.n.Dev.(node.Lender); is {
		if l, err := from.Inherited(s.Queue); err == nil {
			l.Return()
		}
	}
}

// restore implements heldState.
func (s *loanState) restore(h *Handover, g *Guest) error {
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

// crossRing returns the end of the cross ring that a former host had.
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
	return s.CrossRing.GoOn(socket, memory)
}
