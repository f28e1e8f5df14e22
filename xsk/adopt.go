// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// AdoptUMEM maps the memory of another process's UMEM by its memfd (UMEMConfig.Share,
// UMEM.FD). cfg is that of the other process. The descriptor is the UMEM's from here on;
// if there is an error, it is closed.
//
// The memfd must be sealed against shrinking, as NewUMEM does: the other process could
// otherwise take the memory away, and end this one with a signal.
func AdoptUMEM(fd int, cfg UMEMConfig) (*UMEM, error) {
	u, err := cfg.shape()
	if err == nil {
		err = u.adopt(fd)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return u, nil
}

// adopt checks a memfd and maps it.
func (u *UMEM) adopt(fd int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("xsk: adopting a UMEM: descriptor %d: %w: want a memfd: %w", fd, ErrConfig, err)
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("xsk: adopting a UMEM: %w: the memfd can shrink: want F_SEAL_SHRINK", ErrConfig)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("xsk: adopting a UMEM: %w", err)
	}
	if uint64(st.Size) < u.size {
		return fmt.Errorf("xsk: adopting a UMEM: %w: the memfd has %d bytes: want %d for %d chunks of %d", ErrConfig,
			st.Size, u.size, u.Chunks(), u.chunkSize)
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("xsk: adopting a UMEM of %d bytes: %w", st.Size, err)
	}
	u.mem, u.fd = mem, fd
	if st.Blksize >= hugePage {
		u.pages = PagesHuge
	}
	return nil
}

// sharedPages is mapPages for memory of a memfd, which it returns as well. The memfd
// keeps its size from then on.
func sharedPages(size int, huge bool) (fd int, mem []byte, pages Pages, err error) {
	huge = huge && size >= hugePage
	if huge {
		whole := (size + hugePage - 1) &^ (hugePage - 1)
		if fd, mem, err = sealed(whole, unix.MFD_HUGETLB|unix.MFD_HUGE_2MB, unix.MAP_POPULATE); err == nil {
			return fd, mem, PagesHuge, nil
		}
	}
	if fd, mem, err = sealed(size, 0, 0); err != nil {
		return -1, nil, PagesSmall, err
	}
	return fd, mem, populate(mem, huge), nil
}

// sealed makes a memfd that keeps its size, and maps it.
func sealed(size int, kind, flags int) (fd int, mem []byte, err error) {
	if fd, err = unix.MemfdCreate("xdpfab-umem", kind|unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, nil, err
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
	}
	if err != nil {
		return -1, nil, errors.Join(err, unix.Close(fd))
	}
	return fd, mem, nil
}

// FD is the memfd of the memory, -1 if it is private (UMEMConfig.Share) or closed. The
// UMEM remains its owner.
func (u *UMEM) FD() int { return u.fd }

// Adoption is what Adopt has to know of the socket of another process: its Config, as far
// as it counts afterwards, with the defaults filled in.
type Adoption struct {
	UMEM                     *UMEM // the other process's: see AdoptUMEM
	IfIndex, Queue           int
	RXSize, TXSize           int
	FillSize, CompletionSize int
	TXBudget                 int  // Socket.TXBudget
	NoNeedWakeup, BusyPoll   bool // whether the other process has asked for it
}

// Adopt makes a Socket of a socket that another process opened and bound, and passed on
// as a file descriptor. That way a process without privileges gets a queue. It takes
// Linux 6.4. The rings continue where the other process stopped: the caller has to know
// which chunks are in them, and the other process must no longer touch them. The
// descriptor is the socket's from here on; if there is an error, it is closed.
//
// What cannot be checked is that the kernel receives into this UMEM: that is the other
// process's word.
func Adopt(fd int, a Adoption) (*Socket, error) {
	s := &Socket{fd: fd, umem: a.UMEM, at: place{namespaceOf(fd), a.IfIndex, a.Queue}, txBudget: a.TXBudget}
	s.detach()
	if err := a.check(fd); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if err := a.UMEM.enter(false); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if err := s.adopt(&a); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// check refuses a descriptor that is no socket of a queue, and sizes that no ring has.
func (a *Adoption) check(fd int) error {
	if a.UMEM == nil {
		return fmt.Errorf("xsk: adopting a socket: %w: no UMEM", ErrConfig)
	}
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_XDP {
		return fmt.Errorf("xsk: adopting descriptor %d: %w: it is of family %d (%v): want an AF_XDP socket", fd,
			ErrConfig, domain, err)
	}
	for _, f := range []field{{"RXSize", &a.RXSize, false}, {"TXSize", &a.TXSize, false},
		{"FillSize", &a.FillSize, false}, {"CompletionSize", &a.CompletionSize, false}} {
		if *f.size <= 0 || *f.size > maxRingSize || bits.OnesCount(uint(*f.size)) != 1 {
			return fmt.Errorf("xsk: adopting a socket: %s %d: %w: want a power of two up to %d", f.name, *f.size,
				ErrConfig, maxRingSize)
		}
	}
	if a.TXBudget <= 0 || a.TXBudget > max(a.TXSize, defaultTXBudget) {
		return fmt.Errorf("xsk: adopting a socket: TX budget %d: %w: want 1 to %d", a.TXBudget, ErrConfig,
			max(a.TXSize, defaultTXBudget))
	}
	// The call does nothing more than to look at the socket.
	if _, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0,
		0); errno == unix.ENXIO {
		return fmt.Errorf("xsk: adopting a socket: %w: %w", ErrUnbound, errno)
	}
	return nil
}

// adopt maps the rings and asks for the mode.
func (s *Socket) adopt(a *Adoption) error {
	s.queue = &queueRings{refs: 1}
	s.queue.fill.attach(detached[uint64]())
	s.queue.completion.attach(detached[uint64]())
	rx, err := adoptRing[Desc](s.fd, rxRing, a.RXSize, &s.maps)
	if err != nil {
		return err
	}
	tx, err := adoptRing[Desc](s.fd, txRing, a.TXSize, &s.maps)
	if err != nil {
		return err
	}
	fill, err := adoptRing[uint64](s.fd, fillRing, a.FillSize, &s.queue.maps)
	if err != nil {
		return err
	}
	completion, err := adoptRing[uint64](s.fd, completionRing, a.CompletionSize, &s.queue.maps)
	if err != nil {
		return err
	}
	s.rx.attach(rx)
	s.tx.attach(tx)
	s.queue.fill.attach(fill)
	s.queue.completion.attach(completion)
	return s.askMode(a.NoNeedWakeup, a.BusyPoll)
}

// adoptRing maps a ring that another process has made. The kernel refuses to map more
// than there is; a ring of twice the size must be refused, or the indices of the two
// processes would mean different slots.
func adoptRing[T any](fd int, k ringKind, size int, maps *mappings) (s shared[T], err error) {
	if s, err = mapRing[T](fd, k, size, maps); err != nil {
		if kernel.Before(kernel.AdoptRings) { // EBUSY, or EINVAL if the socket is not bound
			return s, fmt.Errorf("%w: %w: another process can map it since Linux %v", err, ErrUnsupported,
				kernel.AdoptRings)
		}
		return s, err
	}
	var longer mappings
	if _, err := mapRing[T](fd, k, 2*size, &longer); err == nil && (2*size)*entrySize[T]() > unix.Getpagesize() {
		return s, errors.Join(fmt.Errorf("xsk: adopting the %s ring: %w: it has more than %d entries", k.name,
			ErrConfig, size), longer.unmap())
	}
	return s, longer.unmap()
}
