// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	// outgoing is how many packets can be queued, a power of two.
	outgoing = 256
	// messagesOut is the most messages of one call.
	messagesOut = 64
	// segments is the most datagrams that the kernel cuts one message into
	// (UDP_MAX_SEGMENTS).
	segments = 64
	// gathered is the most bytes of such a message: with the headers, 64 KiB.
	gathered = 0xffff - wire.MaxOverhead
)

// outlet queues packets, and sends them. Frames of one length that follow each other to
// one peer go as one message, whose last datagram may be shorter: the kernel cuts it,
// or the NIC.
type outlet struct {
	bufs       [outgoing][]byte
	lens       [outgoing]int
	head, tail uint // packets sent or dropped, and packets queued, since the beginning
	stalled    bool // the kernel has no room for those that are left

	messages [messagesOut]message
	parcels  [messagesOut]parcel
	iovs     [outgoing]unix.Iovec
	refused  refusals
}

// parcel is what belongs to a message.
type parcel struct {
	control [64]byte // first, since it has to be aligned
	name    [nameLen]byte
	frames  int
}

func (x *outlet) init(mtu int) {
	for i := range x.bufs {
		x.bufs[i] = make([]byte, wire.WayLen+mtu)
	}
	for i := range x.messages {
		h, p := &x.messages[i].hdr, &x.parcels[i]
		h.Name = &p.name[0]
	}
}

func (x *outlet) buffer() []byte {
	if x.tail-x.head == outgoing {
		return nil
	}
	return x.bufs[x.tail%outgoing]
}

func (x *outlet) add(n int) {
	if x.tail-x.head < outgoing && n > wire.WayLen {
		x.lens[x.tail%outgoing] = n
		x.tail++
	}
}

// put queues a copy of a packet, if there is room.
func (x *outlet) put(packet []byte) {
	if b := x.buffer(); b != nil {
		x.add(copy(b, packet))
	}
}

// packet returns the queued packet at a position from head on.
func (x *outlet) packet(at uint) []byte { return x.bufs[at%outgoing][:x.lens[at%outgoing]] }

// push sends what is queued, as far as the kernel has room. The packets of a message that
// the kernel does not cut go one by one. A packet that the kernel refuses is lost, as on
// a wire.
func (x *outlet) push(sockets []*socket, t *tally) {
	x.stalled = false
	for x.head != x.tail {
		s := from(sockets, x.packet(x.head))
		if s == nil { // the interface no longer has the address
			x.head++
			t.lost.Add(1)
			continue
		}
		n := x.gather(s)
		sent, errno := sendMany(s.fd, x.messages[:n])
		for i := range sent {
			frames := x.parcels[i].frames
			if frames > 1 {
				t.joined.Add(uint64(frames))
			} else {
				x.alone()
			}
			x.head += uint(frames)
		}
		switch {
		case errno == 0 || errno == unix.EINTR: // if it was not all, the next call tells why
		case errno == unix.EAGAIN:
			x.stalled = true
			t.retries.Add(1)
			return
		case x.parcels[0].frames > 1 && refuses(errno):
			way := wire.WayOf(x.packet(x.head))
			x.refused.add(&way.To)
			t.uncut.Add(1)
		default:
			if x.parcels[0].frames == 1 {
				x.alone()
			}
			x.head += uint(x.parcels[0].frames)
			t.lost.Add(uint64(x.parcels[0].frames))
		}
	}
}

// alone records that the first packet of the queue goes by itself.
func (x *outlet) alone() {
	if x.refused.some > 0 {
		way := wire.WayOf(x.packet(x.head))
		x.refused.left(&way.To)
	}
}

// from returns the socket that a packet leaves by.
func from(sockets []*socket, packet []byte) *socket {
	for _, s := range sockets {
		if s.as16 == [16]byte(packet) {
			return s
		}
	}
	return nil
}

// gather makes messages of the queued packets that leave by a socket, up to the first
// that does not, and returns their number.
func (x *outlet) gather(s *socket) int {
	n, iovs := 0, x.iovs[:]
	for at := x.head; at != x.tail && n < messagesOut; n++ {
		first := x.packet(at)
		if s.as16 != [16]byte(first) {
			break
		}
		frames := x.alike(s, at)
		for i := range frames {
			p := x.packet(at + uint(i))
			iovs[i].Base = &p[wire.WayLen]
			iovs[i].SetLen(len(p) - wire.WayLen)
		}
		x.address(n, s, first, frames, iovs)
		iovs = iovs[frames:]
		at += uint(frames)
	}
	return n
}

// alike returns how many packets from a position on can go as one message.
func (x *outlet) alike(s *socket, at uint) int {
	first := x.packet(at)
	if !s.gathers {
		return 1
	}
	if way := wire.WayOf(first); x.refused.of(&way.To) != nil {
		return 1
	}
	size := len(first) - wire.WayLen
	frames, total := 1, size
	for at++; at != x.tail && frames < segments; at++ {
		p := x.packet(at)
		n := len(p) - wire.WayLen
		if total += n; n > size || total > gathered || [wire.WayLen]byte(p) != [wire.WayLen]byte(first) {
			break
		}
		if frames++; n < size { // only the last one may be shorter
			break
		}
	}
	return frames
}

// address completes a message.
func (x *outlet) address(n int, s *socket, first []byte, frames int, iovs []unix.Iovec) {
	h, p := &x.messages[n].hdr, &x.parcels[n]
	p.frames = frames
	way := wire.WayOf(first)
	four := s.addr.Is4()
	h.Namelen = putName(&p.name, &way.To, four)
	h.Iov = &iovs[0]
	h.SetIovlen(frames)
	used := 0
	if frames > 1 {
		used += putControl(p.control[used:], unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2, len(first)-wire.WayLen)
	}
	if way.DSCP != 0 {
		level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
		if !four {
			level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		used += putControl(p.control[used:], level, kind, 4, int(way.DSCP)<<2)
	}
	if h.Control = nil; used > 0 {
		h.Control = &p.control[0]
	}
	h.SetControllen(used)
}
