// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// lendable is a queue that can be lent. One goroutine has it while no program does,
// and takes the frames that arrive there:
//
//	bind ─▶ mind ─ Lend ─▶ lent ─ Loan.Return ─┐
//	  ▲                                        │
//	  └────────────────────────────────────────┘
//
// A queue that was lent is bound anew: nothing is known of the rings that another program
// had. As long as that program, or one that has the descriptors from it, keeps the socket
// open, the kernel refuses.
type lendable struct {
	i      *Interface
	number int
	o      Options
	at     namespace

	done    chan struct{}
	stopped chan struct{} // closed when the goroutine no longer touches the queue
	back    chan struct{} // the queue was given back
	group   sync.WaitGroup

	mu    sync.Mutex
	state LendableState
	q     *Queue // the goroutine's, until it is lent; nil while it is not bound
	loan  *Loan  // nil unless it is lent
	lends uint64
}

// LendableState describes where a queue is that can be lent.
type LendableState string

// The states.
const (
	LendableFree LendableState = "free" // it can be lent
	LendableLent LendableState = "lent"
	LendableKept LendableState = "kept" // given back, but a program that has it from the borrower blocks it
)

// lendables are the queues that can be lent.
func (i *Interface) lendables() (all []*lendable) {
	for _, m := range i.aside {
		if s, is := m.(*lendable); is {
			all = append(all, s)
		}
	}
	return all
}

// prepareLendable binds the queues that can be lent, but for those that others have had
// since before Open. They begin their lives with Mind.
func (i *Interface) prepareLendable(plan nic.Plan, o Options) error {
	o.share = true
	for n := range o.Lend {
		s := &lendable{i: i, number: plan.Queues + n, o: o, at: thisNamespace(), state: LendableKept,
			done: make(chan struct{}), stopped: make(chan struct{}), back: make(chan struct{}, 1)}
		s.o.Inherit = nil
		i.aside = append(i.aside, s)
		is, err := s.inherit(o.Inherit.of(s.number))
		if err == nil && !is {
			err = s.bind()
		}
		if err != nil {
			return fmt.Errorf("%s: queue %d, to be lent: %w", i.name, s.number, err)
		}
		s.o.patience = -1
	}
	return nil
}

// start implements minder.
func (s *lendable) start(deliver func(packet []byte), happened func(Event)) {
	s.mu.Lock()
	if s.q != nil {
		s.state = LendableFree
	}
	lent := s.state == LendableLent
	s.mu.Unlock()
	s.group.Go(func() { s.run(lent, deliver, happened) })
}

// run is the goroutine. lent says that the queue is, since before Open.
func (s *lendable) run(lent bool, deliver func([]byte), happened func(Event)) {
	for {
		if lent {
			select {
			case <-s.back:
			case <-s.done:
				return
			}
		}
		if !s.regain(happened) || !s.mind(deliver) {
			return
		}
		lent = true
	}
}

func (s *lendable) set(state LendableState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// bind opens the queue, and has its frames come here.
func (s *lendable) bind() error {
	q, err := newQueue(s.i.index, s.number, s.o)
	if err != nil {
		return err
	}
	if err := s.i.program.SetSocket(s.number, lane, q.sock.FD()); err != nil {
		return errors.Join(err, q.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.q = q
	return nil
}

// Times between two attempts to bind a queue.
const (
	firstRegain   = 10 * time.Millisecond
	longestRegain = time.Second
)

// regain binds the queue, if it is not bound, however long others keep it, and reports
// false when the interface is closed before.
func (s *lendable) regain(happened func(Event)) bool {
	s.mu.Lock()
	bound := s.q != nil
	s.mu.Unlock()
	if bound {
		return true
	}
	began, told := time.Now(), false
	for wait := firstRegain; ; wait = min(2*wait, longestRegain) {
		err := s.at.do(s.bind)
		if err == nil {
			break
		}
		if !told && time.Since(began) >= bindTimeout {
			told = true
			happened(Event{Kind: QueueKept, From: strconv.Itoa(s.number), To: err.Error()})
		}
		select {
		case <-s.done:
			return false
		case <-time.After(wait):
		}
	}
	if told {
		happened(Event{Kind: QueueBack, From: strconv.Itoa(s.number)})
	}
	s.set(LendableFree)
	return true
}

// mind takes the frames that arrive, until the queue is lent, or the interface closed:
// then it reports false. Nothing is ever sent from here.
func (s *lendable) mind(deliver func([]byte)) (lent bool) {
	var packets [64][]byte
	for {
		select {
		case <-s.done:
			return false
		default:
		}
		s.mu.Lock()
		q, state := s.q, s.state
		s.mu.Unlock()
		n := q.Receive(packets[:])
		for _, p := range packets[:n] {
			deliver(p)
		}
		q.Release()
		switch {
		case state == LendableFree && n == 0:
			q.Wait(time.Second)
		case state == LendableLent && len(q.lent) == 0: // the kernel has all chunks
			select {
			case s.stopped <- struct{}{}:
				return true
			case <-s.done:
				return false
			}
		}
	}
}

// close implements minder. A queue that is lent is not closed.
func (s *lendable) close() error {
	close(s.done)
	s.mu.Lock()
	q := s.q
	s.mu.Unlock()
	if q != nil {
		q.Wake()
	}
	s.group.Wait()
	err := s.at.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.q != nil {
		err = errors.Join(err, s.q.close())
		s.q = nil
	}
	if s.loan != nil {
		s.loan.Close()
	}
	return err
}
