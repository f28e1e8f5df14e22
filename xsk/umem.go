// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	defaultChunkSize = 2048
	hugePage         = 2 << 20 // bytes; the common size on amd64 and arm64
	// rxHeadroom is the room that the kernel leaves free before each received
	// frame, on top of UMEMConfig.Headroom (XDP_PACKET_HEADROOM).
	rxHeadroom = unix.XDP_PACKET_HEADROOM
)

// UMEMConfig shapes a UMEM. Chunks must be given.
type UMEMConfig struct {
	Chunks    int  // number of chunks; enough for the Fill ring plus what is being sent
	ChunkSize int  // bytes, 2048 or 4096; 0 means 2048
	Headroom  int  // bytes kept free before each received frame, besides the kernel's 256
	NoHuge    bool // do not try huge pages
	// Share puts the memory into a memfd, UMEM.FD, so that another process can map it
	// too: see AdoptUMEM.
	Share bool
}

// Pages describes what kind of memory a UMEM got.
type Pages uint8

// The kinds, as in package mr.
const (
	PagesSmall       Pages = iota // ordinary pages
	PagesTransparent              // ordinary mapping; the kernel was asked for huge pages and gives them if it can
	PagesHuge                     // reserved huge pages (hugetlbfs)
)

// String names the kind of page.
func (p Pages) String() string {
	if names := [...]string{"base pages", "transparent huge pages", "huge pages"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Pages(%d)", uint8(p))
}

// UMEM is the memory that sockets exchange frames through. It is mapped and
// populated at once, and pinned by the kernel while a socket is open.
type UMEM struct {
	mem       []byte // the mapping; only NewUMEM and Close write it
	size      uint64 // bytes in chunks; the mapping may be longer
	chunkSize uint64
	headroom  int
	pages     Pages
	fd        int // the memfd of the memory, -1 if it is private

	mu      sync.Mutex
	sockets int // open sockets on this memory; guarded by mu
}

// NewUMEM maps memory for cfg.Chunks chunks. It needs no privilege; the limit on
// locked memory is checked when the first socket is opened.
func NewUMEM(cfg UMEMConfig) (*UMEM, error) {
	u, err := cfg.shape()
	if err != nil {
		return nil, err
	}
	if cfg.Share {
		u.fd, u.mem, u.pages, err = sharedPages(int(u.size), !cfg.NoHuge)
	} else {
		u.mem, u.pages, err = mapPages(int(u.size), !cfg.NoHuge)
	}
	if err != nil {
		return nil, fmt.Errorf("xsk: mapping a UMEM of %d bytes: %w; use fewer chunks", u.size, err)
	}
	return u, nil
}

// shape checks the configuration, fills in the defaults, and returns a UMEM without
// memory.
func (cfg *UMEMConfig) shape() (*UMEM, error) {
	if cfg.ChunkSize == 0 {
		cfg.ChunkSize = defaultChunkSize
	}
	if cfg.ChunkSize != 2048 && cfg.ChunkSize != 4096 {
		return nil, fmt.Errorf("xsk: chunk size %d: %w: want 2048 or 4096", cfg.ChunkSize, ErrConfig)
	}
	if cfg.Chunks <= 0 || int64(cfg.Chunks) > 1<<32-1 {
		return nil, fmt.Errorf("xsk: UMEM of %d chunks: %w: want 1 to 2^32-1", cfg.Chunks, ErrConfig)
	}
	if cfg.Headroom < 0 || cfg.Headroom >= cfg.ChunkSize-rxHeadroom {
		return nil, fmt.Errorf("xsk: headroom %d: %w: want 0 to %d, so that room for a frame is left in a chunk",
			cfg.Headroom, ErrConfig, cfg.ChunkSize-rxHeadroom-1)
	}
	return &UMEM{chunkSize: uint64(cfg.ChunkSize), headroom: cfg.Headroom, fd: -1,
		size: uint64(cfg.Chunks) * uint64(cfg.ChunkSize)}, nil
}

// mapPages maps at least size bytes on the largest pages that can be had.
func mapPages(size int, huge bool) ([]byte, Pages, error) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	huge = huge && size >= hugePage
	if huge {
		whole := (size + hugePage - 1) &^ (hugePage - 1)
		mem, err := unix.Mmap(-1, 0, whole, prot, flags|unix.MAP_HUGETLB|unix.MAP_POPULATE)
		if err == nil {
			return mem, PagesHuge, nil
		}
	}
	// The advice must precede the first touch, so population comes last.
	mem, err := unix.Mmap(-1, 0, size, prot, flags)
	if err != nil {
		return nil, PagesSmall, err
	}
	return mem, populate(mem, huge), nil
}

// populate touches all pages of memory that nothing has touched, of transparent huge
// pages if possible.
func populate(mem []byte, huge bool) Pages {
	pages := PagesSmall
	if huge && unix.Madvise(mem, unix.MADV_HUGEPAGE) == nil {
		pages = PagesTransparent
	}
	if unix.Madvise(mem, unix.MADV_POPULATE_WRITE) != nil { // before Linux 5.14
		for i := 0; i < len(mem); i += unix.Getpagesize() {
			mem[i] = 0
		}
	}
	return pages
}

// Close unmaps the memory. Every slice got from Chunk or Frame becomes invalid:
// touching one afterwards crashes the process. It fails with ErrInUse while a
// socket is open, and does nothing the second time.
func (u *UMEM) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sockets > 0 {
		return fmt.Errorf("xsk: UMEM: %w by %d sockets: close them first", ErrInUse, u.sockets)
	}
	if u.mem == nil {
		return nil
	}
	mem := u.mem
	u.mem, u.size = nil, 0
	err := unix.Munmap(mem)
	if u.fd >= 0 {
		err = errors.Join(err, unix.Close(u.fd))
		u.fd = -1
	}
	if err != nil {
		return fmt.Errorf("xsk: unmapping a UMEM: %w", err)
	}
	return nil
}

// enter counts a socket in. Only the first may come without a sibling, since it
// registers the memory with the kernel.
func (u *UMEM) enter(sibling bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.mem == nil:
		return fmt.Errorf("xsk: UMEM: %w", ErrClosed)
	case u.sockets > 0 && !sibling:
		return fmt.Errorf("xsk: UMEM: %w by another socket: pass that one as Config.Shared", ErrInUse)
	}
	u.sockets++
	return nil
}

func (u *UMEM) leave() {
	u.mu.Lock()
	u.sockets--
	u.mu.Unlock()
}

// register makes the memory known to the kernel through a socket.
func (u *UMEM) register(fd int) error {
	reg := unix.XDPUmemReg{
		Addr: address(u.mem), Len: u.size, Size: uint32(u.chunkSize), Headroom: uint32(u.headroom),
	}
	err := setOption(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, &reg)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOBUFS):
		return fmt.Errorf(
			"xsk: pinning a UMEM of %d bytes: %w: %w; raise RLIMIT_MEMLOCK (ulimit -l) or grant CAP_IPC_LOCK",
			u.size, ErrMemlock, err)
	default:
		return fmt.Errorf("xsk: registering a UMEM of %d bytes: %w", u.size, err)
	}
}

// Chunk is the memory from addr to the end of its chunk, or nil if addr lies
// outside the UMEM.
func (u *UMEM) Chunk(addr uint64) []byte {
	if addr >= u.size {
		return nil
	}
	end := addr&^(u.chunkSize-1) + u.chunkSize
	return u.mem[addr:end:end]
}

// Slab is the memory of so many adjacent chunks, from the first byte of one on, or nil if
// they do not lie in the UMEM.
func (u *UMEM) Slab(addr uint64, chunks int) []byte {
	size := uint64(chunks) * u.chunkSize
	if chunks <= 0 || addr&(u.chunkSize-1) != 0 || addr >= u.size || size > u.size-addr {
		return nil
	}
	return u.mem[addr : addr+size : addr+size]
}

// Frame is the memory that a descriptor describes, or nil if it does not lie
// within one chunk of the UMEM.
func (u *UMEM) Frame(d Desc) []byte {
	c := u.Chunk(d.Addr)
	if uint64(d.Len) > uint64(len(c)) {
		return nil
	}
	return c[:d.Len:d.Len]
}

// Addr is the address of chunk i's first byte.
func (u *UMEM) Addr(i int) uint64 { return uint64(i) * u.chunkSize }

// Chunks is the number of chunks.
func (u *UMEM) Chunks() int { return int(u.size / u.chunkSize) }

// ChunkSize is the size of a chunk in bytes.
func (u *UMEM) ChunkSize() int { return int(u.chunkSize) }

// MaxRX is the longest frame, in bytes from the Ethernet header on, that can be
// received into one chunk in copy mode: headrooms take their share. With zero-copy
// some drivers round it down to whole KiB and silently truncate longer frames (igb,
// igc, ixgbe: 1024 bytes of a chunk of 2048, 3072 of 4096); use chunks of 4096 for
// Ethernet's MTU. A frame to be sent may fill the chunk.
func (u *UMEM) MaxRX() int { return int(u.chunkSize) - u.headroom - rxHeadroom }

// Pages is the kind of memory that the UMEM got.
func (u *UMEM) Pages() Pages { return u.pages }

// Pool makes a FramePool of count chunks, beginning with chunk first.
func (u *UMEM) Pool(first, count int) (*FramePool, error) {
	if first < 0 || count <= 0 || first > u.Chunks()-count {
		return nil, fmt.Errorf("xsk: pool of chunks %d to %d: %w: the UMEM has %d", first, first+count-1,
			ErrConfig, u.Chunks())
	}
	return NewFramePool(u.Addr(first), count, u.ChunkSize())
}

// SlabPool makes a FramePool of slabs of so many chunks each, as many as there are among
// count chunks, the first at chunk first.
func (u *UMEM) SlabPool(first, count, chunks int) (*FramePool, error) {
	if _, err := u.Pool(first, count); err != nil {
		return nil, err
	}
	return NewSlabPool(u.Addr(first), count/max(chunks, 1), chunks, u.ChunkSize())
}
