// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// forwarders are the queues of the interface that are neither used nor lent, since fewer
// are in use than there are. The NIC may put frames into them all the same, and the
// kernel gives those to no socket but one of their queue. So each has a socket, with
// little memory, and one goroutine hands the frames of all to a queue in use.
type forwarders struct {
	waiter
	deaf      int           // further queues, of which none has a socket
	forwarded atomic.Uint64 // frames handed over
	done      chan struct{}
	group     sync.WaitGroup
}

// Sizes of a forwarder's rings and packet memory. A server may have a hundred of them.
const (
	forwarderRing   = 256
	forwarderChunks = forwarderRing + 1
)

// bindForwarders binds the queues behind those in use, of so many that there are. A queue
// that cannot be bound is deaf: its frames are dropped, and counted as frames without a
// socket.
func (i *Interface) bindForwarders(plan nic.Plan, all int, o Options) error {
	// In copy mode the driver's rings stay the kernel's, for all the other traffic.
	o.Copy, o.RingSize, o.Chunks, o.patience = xsk.Copy, forwarderRing, forwarderChunks, forwarderTimeout
	o.listens, o.BusyPoll = true, xsk.BusyPoll{}
	f := &forwarders{done: make(chan struct{})}
	f.deaf = max(all-plan.Bound, 0)
	i.aside = append(i.aside, f)
	for number := plan.Bound; number < min(all, i.bound); number++ {
		q, err := newQueue(i.index, number, o)
		if err != nil {
			continue
		}
		f.queues = append(f.queues, q)
		f.deaf--
		if err := i.program.SetSocket(number, lane, q.sock.FD()); err != nil {
			return fmt.Errorf("%s: %w", i.name, err)
		}
	}
	return nil
}

// Forwarders is the number of further queues whose frames Mind hands over.
func (i *Interface) Forwarders() (n int) {
	for _, m := range i.aside {
		if f, is := m.(*forwarders); is {
			n += len(f.queues)
		}
	}
	return n
}

// start implements minder.
func (f *forwarders) start(deliver func(packet []byte), happened func(Event)) {
	f.group.Go(func() {
		if f.deaf > 0 {
			happened(Event{Kind: Unheard, From: strconv.Itoa(f.deaf)})
		}
		if len(f.queues) > 0 {
			f.mind(deliver, happened)
		}
	})
}

// mind hands over the frames that arrive, until the interface is closed, and tells of the
// first one. Nothing is ever sent from here.
func (f *forwarders) mind(deliver func([]byte), happened func(Event)) {
	var packets [64][]byte
	for {
		select {
		case <-f.done:
			return
		default:
		}
		got := 0
		for _, q := range f.queues {
			n := q.Receive(packets[:])
			for _, p := range packets[:n] {
				deliver(p)
			}
			q.Release()
			if n > 0 && got == 0 && f.forwarded.Load() == 0 {
				happened(Event{Kind: Forwarded, From: strconv.Itoa(q.number)})
			}
			got += n
		}
		if f.forwarded.Add(uint64(got)); got == 0 {
			f.wait(time.Second)
		}
	}
}

// close implements minder.
func (f *forwarders) close() (err error) {
	close(f.done)
	if len(f.queues) > 0 {
		f.queues[0].Wake()
	}
	f.group.Wait()
	return closeQueues(f.queues)
}

// count implements minder.
func (f *forwarders) count(all map[string]uint64) error {
	all["forwarded"] += f.forwarded.Load()
	return countQueues(f.queues, all)
}

// leave implements minder: the next user binds its own forwarders.
func (f *forwarders) leave(*Inheritance) error { return nil }
