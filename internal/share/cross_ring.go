// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/mr"
)

// CrossRing is one end of the way by which a host and the borrower of a queue pass each
// other the packets that arrived on the wrong side: a ring of shared memory in each
// direction, and a pair of sockets to wake the other side, which end when either side has
// gone. As in a network, packets get lost: if the other side does not take them in time.
// So neither can hold up the other. Neither trusts the other's positions and lengths.
type CrossRing struct {
	file *os.File // the socket
	fd   int      // of file
	mem  *mr.Memory
	in   deck

	mu     sync.Mutex // engines of several queues send
	out    deck
	runs   bool
	closed bool
	ended  atomic.Bool // closed or halted, for Run, which does not hold mu
}

// deck is one direction, as one side has mapped it.
type deck struct {
	*deckHeader
	lengths []uint32 // of the packets, bytes
	places  []byte
	at      uint64 // this side's position: packets put in, or taken out
}

// deckHeader begins a direction in memory.
type deckHeader struct {
	put    atomic.Uint64 // packets that have been put in; written by the side that sends
	_      [56]byte
	taken  atomic.Uint64 // those that have been taken out; written by the other side
	_      [56]byte
	sleeps atomic.Uint32 // that side has to be woken; set by it, cleared by its waker
	_      [60]byte
}

const (
	deckPlaces = 256
	// longestPacket is more than any packet of an interface that can be used, bytes.
	longestPacket = 4096

	deckHeaderLen = 192
	deckLen       = (deckHeaderLen + deckPlaces*(4+longestPacket) + page - 1) &^ (page - 1)
)

// deckOf returns one direction of a cross ring, whose memory begins with b.
func deckOf(b []byte) deck {
	header, b := arrayOf[deckHeader](b, 1)
	lengths, b := arrayOf[uint32](b, deckPlaces)
	return deck{deckHeader: &header[0], lengths: lengths, places: b[:deckPlaces*longestPacket]}
}

// NewCrossRing returns one end of a pair, and what the other one is made of: the
// descriptors of its socket and of the memory.
func NewCrossRing() (own *CrossRing, other [2]int, err error) {
	m, err := mr.Memfd("xdpfab cross ring", 2*deckLen)
	if err != nil {
		return nil, other, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, other, errors.Join(fmt.Errorf("socket pair: %w", err), m.Close())
	}
	copied, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		CloseAll(fds[:])
		return nil, other, errors.Join(err, m.Close())
	}
	return newCrossRing(fds[0], m, 0), [2]int{fds[1], copied}, nil
}

// CrossRingOf is the end that came as two descriptors, which are the cross ring's from
// here on, also if there is an error.
func CrossRingOf(socket, memory int) (*CrossRing, error) { return crossRingOf(socket, memory, 1) }

// crossRingOf is the end that sends by one of the directions.
func crossRingOf(socket, memory, out int) (*CrossRing, error) {
	defer CloseAll([]int{memory}) // the mapping has its own
	kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && kind == unix.SOCK_SEQPACKET {
		err = unix.SetNonblock(socket, true)
	} else {
		err = fmt.Errorf("descriptor %d is no cross ring (%v): want a socket for packets", socket, err)
	}
	if err != nil {
		CloseAll([]int{socket})
		return nil, err
	}
	m, err := mr.Shared(memory, 2*deckLen)
	if err == nil && len(m.Bytes()) < 2*deckLen {
		err = errors.Join(fmt.Errorf("cross ring of %d bytes: want %d", len(m.Bytes()), 2*deckLen), m.Close())
	}
	if err != nil {
		CloseAll([]int{socket})
		return nil, err
	}
	return newCrossRing(socket, m, out), nil
}

// newCrossRing makes an end that sends by one of the directions.
func newCrossRing(socket int, m *mr.Memory, out int) *CrossRing {
	b := m.Bytes()
	return &CrossRing{file: os.NewFile(uintptr(socket), "cross ring"), fd: socket, mem: m,
		out: deckOf(b[out*deckLen:]), in: deckOf(b[(1-out)*deckLen:])}
}

// Send passes a copy of a packet to the other side, if there is room. It does not block,
// and makes a system call only if the other side sleeps. Any thread may call it, also
// after Close.
func (f *CrossRing) Send(packet []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &f.out
	if f.closed || len(packet) > longestPacket || d.at-d.taken.Load() >= deckPlaces {
		return
	}
	place := d.at % deckPlaces
	d.lengths[place] = uint32(copy(d.places[place*longestPacket:], packet))
	d.at++
	d.put.Swap(d.at)
	if d.sleeps.Load() != 0 && d.sleeps.Swap(0) != 0 {
		_ = unix.Send(f.fd, stroke, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
}

// Run hands the packets of the other side to deliver, which must copy them, until either
// side has closed its end or the other one breaks the rules. It may be called once.
func (f *CrossRing) Run(deliver func(packet []byte)) {
	f.mu.Lock()
	f.runs = !f.closed
	f.mu.Unlock()
	if !f.runs {
		return
	}
	defer f.leave(false)
	var rung [8]byte
	for f.take(deliver) {
		f.in.sleeps.Swap(1)
		if f.in.put.Load() != f.in.at { // since it was looked at
			f.in.sleeps.Store(0)
			continue
		}
		if n, err := f.file.Read(rung[:]); n == 0 || err != nil {
			return
		}
	}
}

// take hands out all packets that are there. It returns false if the positions or a
// length make no sense, and once the end is closed: the other side may always have
// another packet.
func (f *CrossRing) take(deliver func(packet []byte)) bool {
	d := &f.in
	for {
		put := d.put.Load()
		if put-d.at > deckPlaces || f.ended.Load() {
			return false
		}
		if put == d.at {
			return true
		}
		for ; d.at != put; d.at++ {
			place := d.at % deckPlaces
			n := atomic.LoadUint32(&d.lengths[place])
			if n > longestPacket {
				return false
			}
			deliver(d.places[place*longestPacket:][:n:n])
		}
		d.taken.Store(d.at)
	}
}

// Close closes this end. Run returns.
func (f *CrossRing) Close() error { return f.leave(true) }

// leave ends Run, or the cross ring. The last to leave unmaps the memory.
func (f *CrossRing) leave(closes bool) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !closes {
		f.runs = false
	} else if !f.closed {
		f.closed = true
		f.ended.Store(true)
		err = f.file.Close()
	}
	if f.closed && !f.runs && f.mem != nil {
		err = errors.Join(err, f.mem.Close())
		f.mem = nil
	}
	return err
}
