// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	// burst is the most packets of one Receive.
	burst = 64
	// longs is how many messages one call takes if the kernel joins datagrams. Each may
	// be of as many datagrams as fit into longest bytes.
	longs   = 16
	longest = 0xffff
)

// intake receives messages, and cuts those that the kernel has joined into packets.
type intake struct {
	slots    []slot
	messages []message
	copies   [burst][]byte // packets of joined datagrams, but for the first one of each message

	socket  *socket // that the messages are from
	got, at int     // messages received, and the one being cut
	off     int     // bytes of that one that have been handed out
	hot     int     // index of the socket that had messages last
	other   int     // index of the socket that was asked last besides
}

// slot is the memory of one message. Before the payload is room for a Way.
type slot struct {
	control [64]byte // first, since it has to be aligned
	name    [nameLen]byte
	iov     unix.Iovec
	buf     []byte
}

func (x *intake) init(sockets []*socket, mtu int) {
	n, size := burst, wire.WayLen+mtu
	for _, s := range sockets {
		if s.coalesce {
			n, size = longs, wire.WayLen+longest
		}
	}
	x.slots, x.messages = make([]slot, n), make([]message, n)
	for i := range x.slots {
		s, h := &x.slots[i], &x.messages[i].hdr
		s.buf = make([]byte, size)
		s.iov.Base = &s.buf[wire.WayLen]
		s.iov.SetLen(size - wire.WayLen)
		h.Name, h.Iov, h.Control = &s.name[0], &s.iov, &s.control[0]
		h.SetIovlen(1)
	}
	if n == longs {
		for i := range x.copies {
			x.copies[i] = make([]byte, wire.WayLen+mtu)
		}
	}
}

// left reports whether packets of the last call are still to be handed out.
func (x *intake) left() bool { return x.at < x.got }

func (x *intake) receive(packets [][]byte, sockets []*socket, t *tally) int {
	if !x.left() {
		x.fetch(sockets, t)
	}
	n, most := 0, min(len(packets), burst)
	for x.left() && n < most {
		n = x.cut(packets[:most], n, t)
	}
	return n
}

// fetch receives from the socket that had messages last, and if it has none from one of
// the others.
func (x *intake) fetch(sockets []*socket, t *tally) {
	if x.ask(sockets[x.hot], t) || len(sockets) == 1 {
		return
	}
	if x.other++; x.other >= len(sockets) {
		x.other = 0
	}
	if x.other != x.hot && x.ask(sockets[x.other], t) {
		x.hot = x.other
	}
}

// ask receives from one socket, and reports whether it had messages.
func (x *intake) ask(s *socket, t *tally) bool {
	for i := range x.messages {
		h := &x.messages[i].hdr
		h.Namelen, h.Flags = nameLen, 0
		h.SetControllen(len(x.slots[i].control))
	}
	n, errno := receiveMany(s.fd, x.messages)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR:
	default:
		t.refused.Add(1) // an error of something sent, which the kernel tells once
	}
	x.socket, x.got, x.at, x.off = s, n, 0, 0
	return n > 0
}

// cut hands out packets of the message at hand until packets, filled up to n, is full.
func (x *intake) cut(packets [][]byte, n int, t *tally) int {
	s, m := &x.slots[x.at], &x.messages[x.at]
	payload := s.buf[wire.WayLen:][:m.n]
	size := control(s.control[:m.hdr.Controllen], unix.IPPROTO_UDP, unix.UDP_GRO)
	if size == 0 {
		size = len(payload)
	}
	if x.off == 0 {
		way := wire.Way{From: nameOf(&s.name, x.socket.addr.Is4()), To: x.socket.as16}
		if m.hdr.Flags&unix.MSG_TRUNC != 0 || len(payload) == 0 || !single(&way.From) {
			t.dropped.Add(1)
			x.at++
			return n
		}
		wire.PutWay(s.buf, &way)
		end := min(size, len(payload))
		packets[n] = s.buf[:wire.WayLen+end]
		n, x.off = n+1, end
	}
	for ; x.off < len(payload) && n < len(packets); n++ {
		frame := payload[x.off:min(x.off+size, len(payload))]
		x.off += len(frame)
		b := x.copies[n]
		if len(frame) > len(b)-wire.WayLen { // longer than any frame that was agreed on
			t.dropped.Add(1)
			n--
			continue
		}
		copy(b, s.buf[:wire.WayLen])
		packets[n] = b[:wire.WayLen+copy(b[wire.WayLen:], frame)]
	}
	if x.off == len(payload) {
		x.at, x.off = x.at+1, 0
	}
	return n
}
