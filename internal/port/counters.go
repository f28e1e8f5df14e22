// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/xsk"
)

// tally counts what only the queue can see. The queue's thread writes it, any
// thread reads it.
type tally struct {
	lost    atomic.Uint64 // packets that the device dropped when they were to be sent
	retries atomic.Uint64 // kicks after which packets were left to be sent
	bogus   atomic.Uint64 // completions of packets that were not in flight
	rescued atomic.Uint64 // buffers taken back without a completion of their own

	gathered atomic.Uint64 // received packets that were joined from several chunks
	repeated atomic.Uint64 // received packets dropped, since their buffer was not the kernel's to give
}

// queueCounters names the counters that are summed over the queues.
var queueCounters = map[string]func(*tally, *xsk.Statistics) uint64{
	"tx_lost":              func(t *tally, _ *xsk.Statistics) uint64 { return t.lost.Load() },
	"tx_retries":           func(t *tally, _ *xsk.Statistics) uint64 { return t.retries.Load() },
	"bad_completions":      func(t *tally, _ *xsk.Statistics) uint64 { return t.bogus.Load() },
	"rescued_buffers":      func(t *tally, _ *xsk.Statistics) uint64 { return t.rescued.Load() },
	"gathered":             func(t *tally, _ *xsk.Statistics) uint64 { return t.gathered.Load() },
	"repeated_buffers":     func(t *tally, _ *xsk.Statistics) uint64 { return t.repeated.Load() },
	"xsk_rx_dropped":       func(_ *tally, s *xsk.Statistics) uint64 { return s.RXDropped },
	"xsk_rx_invalid_descs": func(_ *tally, s *xsk.Statistics) uint64 { return s.RXInvalidDescs },
	"xsk_tx_invalid_descs": func(_ *tally, s *xsk.Statistics) uint64 { return s.TXInvalidDescs },
	"xsk_rx_ring_full":     func(_ *tally, s *xsk.Statistics) uint64 { return s.RXRingFull },
	"xsk_fill_ring_empty":  func(_ *tally, s *xsk.Statistics) uint64 { return s.FillRingEmpty },
	"xsk_tx_ring_empty":    func(_ *tally, s *xsk.Statistics) uint64 { return s.TXRingEmpty },
}

// Counters returns every counter by name: the XDP program's decisions
// ("xdp_redirect", see bpf.Reason), the sockets' statistics ("xsk_rx_dropped",
// see xsk.Statistics) and the queues' own, each since Open. "forwarded" are the frames
// that came on queues which are not in use. It makes system calls.
func (i *Interface) Counters() (map[string]uint64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, ErrClosed
	}
	program, err := i.program.Counters()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.name, err)
	}
	all := make(map[string]uint64, len(program)+len(queueCounters))
	for r, n := range program {
		all["xdp_"+bpf.Reason(r).String()] = n
	}
	errs := []error{countQueues(i.queues, all)}
	for _, m := range i.aside {
		errs = append(errs, m.count(all))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", i.name, err)
	}
	return all, nil
}

// countQueues adds what some queues have counted.
func countQueues(queues []*Queue, all map[string]uint64) error {
	for _, q := range queues {
		if err := q.count(all); err != nil {
			return err
		}
	}
	return nil
}

// count adds what the queue has counted.
func (q *Queue) count(all map[string]uint64) error {
	s, err := q.sock.Statistics()
	if err != nil {
		return fmt.Errorf("queue %d: %w", q.number, err)
	}
	for name, value := range queueCounters {
		all[name] += value(&q.tally, &s)
	}
	return nil
}
