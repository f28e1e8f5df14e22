// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Socket is an AF_XDP socket bound to one queue of one interface. See the package
// comment for which thread may do what.
type Socket struct {
	fd   int // -1 once closed
	umem *UMEM
	at   place

	rx    Consumer[Desc]
	tx    Producer[Desc]
	queue *queueRings // its own, or those of the socket it shares the queue with
	maps  mappings    // of rx and tx

	mode       Mode // ZeroCopy or Copy, as the kernel reports it
	txBudget   int
	alwaysKick bool // a system call is due whatever the TX ring's flags say
	alwaysWake bool // the same for the Fill ring

	fds [maxPollFDs]unix.PollFd // scratch of Poll, the owner thread's

	closing sync.Mutex
	closed  bool // guarded by closing
}

// Open creates a socket, maps its rings and binds it. It needs CAP_NET_RAW. The
// socket belongs to the network namespace of the calling thread and may be used
// from any thread afterwards. Errors match one of the package's sentinels where
// the cause is known, and the errno.
func Open(cfg Config) (*Socket, error) {
	if cfg.Shared != nil && cfg.UMEM == nil {
		cfg.UMEM = cfg.Shared.umem
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, socketError(err)
	}
	s := &Socket{fd: fd, umem: cfg.UMEM, at: place{namespaceOf(fd), cfg.IfIndex, cfg.Queue}}
	s.detach()
	sameQueue := cfg.Shared != nil && cfg.Shared.at == s.at
	if err = cfg.complete(sameQueue); err == nil {
		err = s.umem.enter(cfg.Shared != nil)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err = s.setup(&cfg, sameQueue); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// setup does everything that Close undoes, in the order that the kernel
// requires.
func (s *Socket) setup(cfg *Config, sameQueue bool) error {
	if cfg.Shared == nil {
		// The previous socket's pages are given back some time after its close.
		err := retry(cfg.BindTimeout, unix.ENOBUFS, func() error { return s.umem.register(s.fd) })
		if err != nil {
			return err
		}
	}
	if err := s.makeRings(cfg, sameQueue); err != nil {
		return err
	}
	if err := s.setOptions(cfg); err != nil {
		return err
	}
	if err := s.bind(cfg); err != nil {
		return err
	}
	return s.askMode(cfg.NoNeedWakeup, cfg.BusyPoll.Time > 0)
}

// askMode asks which mode the kernel has chosen, and notes when system calls are due.
func (s *Socket) askMode(noNeedWakeup, busyPoll bool) error {
	var flags uint32
	if _, err := option(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS, &flags); err != nil {
		return fmt.Errorf("xsk: asking for the mode: %w", err)
	}
	s.mode = Copy
	if flags&unix.XDP_OPTIONS_ZEROCOPY != 0 {
		s.mode = ZeroCopy
	}
	// In copy mode the kernel sends within the call and never otherwise. Without
	// need-wakeup the flags stay silent, and busy polling is driven by the calls.
	s.alwaysWake = busyPoll
	s.alwaysKick = s.mode == Copy || noNeedWakeup || s.alwaysWake || s.tx.Size() == 0
	return nil
}

// makeRings creates the socket's two or four rings.
func (s *Socket) makeRings(cfg *Config, sameQueue bool) error {
	if cfg.RXSize != NoRing {
		r, err := makeRing[Desc](s.fd, rxRing, cfg.RXSize, &s.maps)
		if err != nil {
			return err
		}
		s.rx.attach(r)
	}
	if cfg.TXSize != NoRing {
		r, err := makeRing[Desc](s.fd, txRing, cfg.TXSize, &s.maps)
		if err != nil {
			return err
		}
		s.tx.attach(r)
	}
	if sameQueue {
		if err := cfg.Shared.queue.join(); err != nil {
			return err
		}
		s.queue = cfg.Shared.queue
		return nil
	}
	s.queue = &queueRings{refs: 1}
	return s.queue.create(s.fd, cfg)
}

// detach leaves the socket's own rings empty and harmless.
func (s *Socket) detach() {
	s.rx.attach(detached[Desc]())
	s.tx.attach(detached[Desc]())
}

// Close closes the socket, unmaps its rings and releases the UMEM, which stays
// open. Rings that other sockets share live on until the last of these is closed.
// It is idempotent.
//
// Frames that were in flight are not completed: see FramePool.Reclaim.
func (s *Socket) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.alwaysKick, s.alwaysWake = true, true // so that both ask the kernel, which says EBADF
	s.detach()
	var errs []error
	if s.queue != nil {
		errs = append(errs, s.queue.leave())
	}
	errs = append(errs, s.maps.unmap(), unix.Close(s.fd))
	s.fd = -1
	s.umem.leave()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("xsk: closing: %w", err)
	}
	return nil
}

// FD is the socket's file descriptor, for an XSKMAP, poll or epoll; -1 once
// closed. The socket remains its owner.
func (s *Socket) FD() int { return s.fd }

// UMEM is the memory that the socket uses.
func (s *Socket) UMEM() *UMEM { return s.umem }

// Queue is the queue that the socket is bound to.
func (s *Socket) Queue() int { return s.at.queue }

// RX is the ring of received frames; of size 0 if the socket was opened without.
func (s *Socket) RX() *Consumer[Desc] { return &s.rx }

// TX is the ring of frames to send; of size 0 if the socket was opened without.
func (s *Socket) TX() *Producer[Desc] { return &s.tx }

// Fill is the ring that takes chunks for the kernel to receive into. Sockets that
// share a queue return the same ring.
func (s *Socket) Fill() *Producer[uint64] { return &s.queue.fill }

// Completion is the ring that gives back the chunks of frames that were sent.
// Sockets that share a queue return the same ring.
func (s *Socket) Completion() *Consumer[uint64] { return &s.queue.completion }

// Mode is ZeroCopy or Copy: what the kernel chose, not what was asked for.
func (s *Socket) Mode() Mode { return s.mode }

// TXBudget is how many descriptors one Kick sends at most in copy mode. Kernels
// before 6.17 are fixed at 32.
func (s *Socket) TXBudget() int { return s.txBudget }

// Statistics are the kernel's counters of a socket since it was opened
// (struct xdp_statistics). Kernels before 5.9 fill in the first three only.
type Statistics struct {
	RXDropped      uint64 // frames dropped: no chunk to receive into, frame longer than UMEM.MaxRX, or wrong queue
	RXInvalidDescs uint64 // Fill entries refused. Copy mode leaves it 0 and counts the frame in RXDropped
	TXInvalidDescs uint64 // TX entries refused: they are never sent nor completed
	RXRingFull     uint64 // frames dropped because RX was full
	FillRingEmpty  uint64 // times that the kernel found Fill empty
	TXRingEmpty    uint64 // times that the kernel found TX empty
}

// Statistics reads the socket's counters. It is a system call.
func (s *Socket) Statistics() (Statistics, error) {
	var st Statistics
	if _, err := option(s.fd, unix.SOL_XDP, unix.XDP_STATISTICS, &st); err != nil {
		if errors.Is(err, unix.EBADF) {
			return st, fmt.Errorf("xsk: statistics: socket: %w: %w", ErrClosed, err)
		}
		return st, fmt.Errorf("xsk: statistics: %w", err)
	}
	return st, nil
}
