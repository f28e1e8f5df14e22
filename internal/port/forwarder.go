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

// forwarder is a queue of the interface that is neither used nor lent, since
// Options.Queues asked for fewer than there are. The NIC may put frames into it all the
// same, and the kernel gives those to no socket but one of this queue. So the forwarder
// has a socket, with little memory, and a goroutine that hands the frames to a queue in
// use.
type forwarder struct {
	q     *Queue
	done  chan struct{}
	group sync.WaitGroup
}

// Sizes of a forwarder's rings and packet memory.
const (
	forwarderRing   = 256
	forwarderChunks = 2 * forwarderRing
)

// bindForwarders binds the queues behind those in use, as many as sessions could name. A
// queue that cannot be bound is left out: its frames are dropped, and counted as frames
// without a socket.
func (i *Interface) bindForwarders(plan nic.Plan, o Options) error {
	// In copy mode the driver's rings stay the kernel's, for all the other traffic.
	o.Copy, o.RingSize, o.Chunks, o.patience = xsk.Copy, forwarderRing, forwarderChunks, forwarderTimeout
	for number := plan.Bound; number < i.bound; number++ {
		q, err := newQueue(i.index, number, plan.Chunk, o)
		if err != nil {
			continue
		}
		i.aside = append(i.aside, &forwarder{q: q, done: make(chan struct{})})
		if err := i.program.SetSocket(number, lane, q.sock.FD()); err != nil {
			return fmt.Errorf("port: %s: %w", i.name, err)
		}
	}
	return nil
}

// Forwarders is the number of further queues whose frames Mind hands over.
func (i *Interface) Forwarders() (n int) {
	for _, m := range i.aside {
		if _, is := m.(*forwarder); is {
			n++
		}
	}
	return n
}

// start implements minder. A forwarder always comes back.
func (s *forwarder) start(deliver func(packet []byte), _ func(Event)) {
	s.group.Go(func() { s.mind(deliver) })
}

// mind hands over the frames that arrive, until the interface is closed. Nothing is ever
// sent from here.
func (s *forwarder) mind(deliver func([]byte)) {
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
func (s *forwarder) close() error {
	close(s.done)
	s.q.Wake()
	s.group.Wait()
	return s.q.close()
}

// count implements minder: the XDP program counts the frames.
func (s *forwarder) count(map[string]uint64) {}

// leave implements minder: the next user binds its own forwarders.
func (s *forwarder) leave(*Inheritance) error { return nil }
