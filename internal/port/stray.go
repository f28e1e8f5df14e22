// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// stray is a queue of the interface that is neither used nor lent, since Options.Queues
// asked for fewer than there are. The NIC may put frames into it all the same, and the
// kernel gives those to no socket but one of this queue. So the stray has a socket, with
// little memory, and a goroutine that hands the frames to a queue in use.
type stray struct {
	q     *Queue
	done  chan struct{}
	group sync.WaitGroup
}

// Sizes of a stray's rings and packet memory.
const (
	strayRing   = 256
	strayChunks = 2 * strayRing
)

// bindStrays binds the queues behind those in use, as many as sessions could name. A
// queue that cannot be bound is left out: its frames are dropped, and counted as frames
// without a socket.
func (i *Interface) bindStrays(plan nic.Plan, o Options) error {
	// In copy mode the driver's rings stay the kernel's, for all the other traffic.
	o.Copy, o.RingSize, o.Chunks, o.patience = xsk.Copy, strayRing, strayChunks, strayTimeout
	for number := plan.Bound; number < i.bound; number++ {
		q, err := newQueue(i.index, number, plan.Chunk, o)
		if err != nil {
			continue
		}
		i.aside = append(i.aside, &stray{q: q, done: make(chan struct{})})
		if err := i.program.SetSocket(number, lane, q.sock.FD()); err != nil {
			return fmt.Errorf("port: %s: %w", i.name, err)
		}
	}
	return nil
}

// Strays is the number of further queues whose frames Mind hands over.
func (i *Interface) Strays() (n int) {
	for _, m := range i.aside {
		if _, is := m.(*stray); is {
			n++
		}
	}
	return n
}

// start implements minder. A stray always comes back.
func (s *stray) start(deliver func(packet []byte), _ func(Event)) {
	s.group.Go(func() { s.mind(deliver) })
}

// mind hands over the frames that arrive, until the interface is closed. Nothing is ever
// sent from here.
func (s *stray) mind(deliver func([]byte)) {
	var packets [64][]byte
	for {
		select {
		case <-s.done:
			return
		default:
		}
		n := s.q.Receive(packets[:])
		for _, p := range packets[:n] {
			deliver(p)
		}
		if s.q.Release(); n == 0 {
			s.q.Wait(time.Second)
		}
	}
}

// close implements minder.
func (s *stray) close() error {
	close(s.done)
	s.q.Wake()
	s.group.Wait()
	return s.q.close()
}

// count implements minder: the XDP program counts the frames.
func (s *stray) count(map[string]uint64) {}

// leave implements minder: the next user binds its own strays.
func (s *stray) leave(*Inheritance) error { return nil }
