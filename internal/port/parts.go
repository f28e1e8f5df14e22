// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/xsk"
)

// Parts describe a queue that one process opened and another one drives: all that the
// other has to know apart from the descriptors of socket and memory.
type Parts struct {
	Number    int  `json:"number"`     // of the queue
	IfIndex   int  `json:"if_index"`   // of the interface
	Chunks    int  `json:"chunks"`     // packet buffers; the first half is for receiving, and the kernel has all of it
	ChunkSize int  `json:"chunk_size"` // bytes
	RingSize  int  `json:"ring_size"`  // entries; the fill ring has more (Options.fillSize)
	TXBudget  int  `json:"tx_budget"`  // packets for each call
	BusyPoll  bool `json:"busy_poll"`
	Segments  int  `json:"segments,omitempty"` // see nic.Plan
}

// partsOf describes a queue that was opened with o.
func (q *Queue) partsOf(ifindex int, o Options) Parts {
	return Parts{Number: q.number, IfIndex: ifindex, Chunks: q.umem.Chunks(), ChunkSize: q.umem.ChunkSize(),
		RingSize: o.RingSize, TXBudget: q.sock.TXBudget(), BusyPoll: o.BusyPoll.Time > 0,
		Segments: o.segments}
}

// Adopt makes a queue of the descriptors of its socket and its memory, which another
// process opened and no longer touches. No privilege is needed. The descriptors are the
// queue's from here on; if there is an error, they are closed.
func Adopt(p Parts, socket, memory int) (*Queue, error) {
	o := Options{RingSize: p.RingSize, Chunks: p.Chunks}
	if err := o.complete(); err != nil || p.RingSize == 0 || p.Chunks == 0 {
		return nil,
			errors.Join(err, fmt.Errorf("queue %d with %d chunks and rings of %d entries cannot be adopted",
				p.Number, p.Chunks, p.RingSize),
				unix.Close(socket), unix.Close(memory))
	}
	q := &Queue{number: p.Number}
	if err := q.adopt(&p, o.fillSize(), socket, memory); err != nil {
		return nil, errors.Join(fmt.Errorf("queue %d: %w", p.Number, err), q.close())
	}
	return q, nil
}

func (q *Queue) adopt(p *Parts, fill, socket, memory int) (err error) {
	if q.umem, err = xsk.AdoptUMEM(memory, xsk.UMEMConfig{Chunks: p.Chunks, ChunkSize: p.ChunkSize}); err != nil {
		return errors.Join(err, unix.Close(socket))
	}
	q.sock, err = xsk.Adopt(socket, xsk.Adoption{
		UMEM: q.umem, IfIndex: p.IfIndex, Queue: p.Number, BusyPoll: p.BusyPoll, TXBudget: p.TXBudget,
		RXSize: p.RingSize, TXSize: p.RingSize, CompletionSize: p.RingSize, FillSize: fill,
	})
	if err != nil {
		return err
	}
	if err := q.alarm(); err != nil {
		return err
	}
	return q.use(p.Chunks/2, p.Segments)
}

// Close gives up a queue that was adopted. No thread may use it from then on, except for
// Wake.
func (q *Queue) Close() error { return q.close() }

// Number is the queue's number on its interface.
func (q *Queue) Number() int { return q.number }

// Modes reports how packets get to and from the queue.
func (q *Queue) Modes() (copied xsk.Mode, pages xsk.Pages) { return q.mode, q.umem.Pages() }

// Counters returns the statistics of the queue and its socket by name, as those of an
// Interface.
func (q *Queue) Counters() (map[string]uint64, error) {
	all := make(map[string]uint64, len(queueCounters))
	return all, q.count(all)
}
