// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// place is the queue that a socket is bound to. Interface indices repeat from one
// network namespace to the next, so the namespace is part of it.
type place struct {
	namespace      uint64 // SO_NETNS_COOKIE; 0 before Linux 5.14
	ifIndex, queue int
}

// queueRings are the two rings that belong to a queue rather than to a socket.
// Sockets on the same queue use the same ones, and the last socket to leave
// unmaps them.
type queueRings struct {
	fill       Producer[uint64]
	completion Consumer[uint64]

	mu   sync.Mutex
	maps mappings // guarded by mu
	refs int      // sockets that use these rings; guarded by mu
}

// create makes both rings on the socket. It runs before the rings are shared.
func (q *queueRings) create(fd int, cfg *Config) error {
	q.fill.attach(detached[uint64]())
	q.completion.attach(detached[uint64]())
	fill, err := makeRing[uint64](fd, fillRing, cfg.FillSize, &q.maps)
	if err != nil {
		return err
	}
	completion, err := makeRing[uint64](fd, completionRing, cfg.CompletionSize, &q.maps)
	if err != nil {
		return err
	}
	q.fill.attach(fill)
	q.completion.attach(completion)
	return nil
}

// join counts one more socket in; it fails if the last one has just left.
func (q *queueRings) join() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refs == 0 {
		return fmt.Errorf("xsk: the Shared socket: %w", ErrClosed)
	}
	q.refs++
	return nil
}

func (q *queueRings) leave() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refs--; q.refs > 0 {
		return nil
	}
	q.fill.attach(detached[uint64]())
	q.completion.attach(detached[uint64]())
	return q.maps.unmap()
}

// mappings collects mapped memory for one release.
type mappings [][]byte

func (m *mappings) unmap() error {
	var errs []error
	for _, mem := range *m {
		errs = append(errs, unix.Munmap(mem))
	}
	*m = nil
	return errors.Join(errs...)
}

// ringKind is the kernel's description of a ring: the option that makes it, the
// page offset that maps it, and its place inside the mapping.
type ringKind struct {
	name   string
	option int
	page   int64
	off    func(*unix.XDPMmapOffsets) unix.XDPRingOffset
}

var (
	rxRing = ringKind{"RX", unix.XDP_RX_RING, unix.XDP_PGOFF_RX_RING,
		func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Rx }}
	txRing = ringKind{"TX", unix.XDP_TX_RING, unix.XDP_PGOFF_TX_RING,
		func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Tx }}
	fillRing = ringKind{"Fill", unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_PGOFF_FILL_RING,
		func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Fr }}
	completionRing = ringKind{"Completion", unix.XDP_UMEM_COMPLETION_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING,
		func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Cr }}
)

// makeRing creates a ring of size entries on the socket and maps it.
func makeRing[T any](fd int, k ringKind, size int, maps *mappings) (s shared[T], err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_XDP, k.option, size); err != nil {
		return s, fmt.Errorf("xsk: %s ring of %d entries: %w", k.name, size, err)
	}
	return mapRing[T](fd, k, size, maps)
}

// mapRing maps a ring of the socket, of size entries. The mapping outlives the socket's
// descriptor and goes into maps.
func mapRing[T any](fd int, k ringKind, size int, maps *mappings) (shared[T], error) {
	var s shared[T]
	var offs unix.XDPMmapOffsets
	n, err := option(fd, unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, &offs)
	if err != nil {
		return s, fmt.Errorf("xsk: ring offsets: %w", err)
	}
	if want := 4 * 4 * 8; n != want {
		return s, fmt.Errorf("xsk: ring offsets of %d bytes, want %d: %w: Linux 5.4 or later is needed", n, want,
			ErrUnsupported)
	}
	off := k.off(&offs)
	mem, err := unix.Mmap(fd, k.page, int(off.Desc)+size*entrySize[T](),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return s, fmt.Errorf("xsk: mapping the %s ring of %d entries: %w", k.name, size, err)
	}
	*maps = append(*maps, mem)
	return ringView[T](mem, off, size), nil
}
