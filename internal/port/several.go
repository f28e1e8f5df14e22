// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import "github.com/xdpfab/xdpfab/xsk"

// Above an MTU that one chunk holds, a packet lies in several: as many descriptors in a
// row, all but the last with xsk.Continued. What is sent lies in one slab, and so needs
// no copy. What is received lies in chunks anywhere, behind the kernel's headroom, and is
// joined by a copy.

// joiner has the memory that received packets are joined in. It belongs to the queue's
// thread.
type joiner struct {
	mem  []byte // joined packets' worth of size bytes each
	size int
	used int // packets, since the last Release
}

const (
	// packets in several chunks of one Receive: those left over come with the next. So
	// few that their memory stays in the cache
	joined   = 16
	maxParts = 24 // descriptors of a packet: the kernel makes 18 at most, of 3456 bytes or more
)

func newJoiner(size int) *joiner { return &joiner{mem: make([]byte, joined*size), size: size} }

// next is the memory for the next packet, or nil if all is in use until Release.
func (j *joiner) next() []byte {
	if j.used == joined {
		return nil
	}
	return j.mem[j.used*j.size:][:j.size:j.size]
}

// receiveParts is Receive for packets that may lie in several chunks. It takes whole
// packets alone: of one that is not there to its end, nothing leaves RX.
func (q *Queue) receiveParts(packets [][]byte) int {
	n := q.rx.Peek(cap(q.lent) - len(q.lent))
	if n == 0 {
		q.sock.WakeRX()
		return 0
	}
	taken, good := 0, 0
	for taken < n && good < len(packets) {
		k := q.whole(taken, n)
		if k == 0 {
			break
		}
		packet, room := q.join(taken, k)
		if !room {
			break
		}
		if taken += k; packet != nil {
			packets[good] = packet
			good++
		}
	}
	q.rx.Release(taken)
	return good
}

// whole returns how many of n descriptors, from number at on, are those of one packet; 0
// if its end is missing. A packet without end, which no kernel makes, ends somewhere.
func (q *Queue) whole(at, n int) int {
	for i := at; i < n; i++ {
		if q.rx.Get(i).Options&xsk.Continued == 0 || i-at == maxParts {
			return i - at + 1
		}
	}
	return 0
}

// join borrows the k chunks of the packet at a descriptor and returns a view of it, or
// nil if it is not sound. There may be no room for it before the next Release.
func (q *Queue) join(at, k int) (packet []byte, room bool) {
	if k == 1 {
		if d := q.rx.Get(at); q.lend(d.Addr) {
			return q.umem.Frame(d), true
		}
		return nil, true
	}
	to := q.parts.next()
	if to == nil {
		return nil, false
	}
	sound, n := true, 0
	for i := range k {
		d := q.rx.Get(at + i)
		part := q.umem.Frame(d)
		sound = q.lend(d.Addr) && sound && n+len(part) <= len(to)
		if sound {
			n += copy(to[n:], part)
		}
	}
	if !sound {
		return nil, true
	}
	q.parts.used++
	q.tally.gathered.Add(1)
	return to[:n:n], true
}

// sendParts is Send for a packet of one or several chunks.
func (q *Queue) sendParts(n int) {
	chunk := q.umem.ChunkSize()
	k := max((n+chunk-1)/chunk, 1)
	if !q.held || !q.pool.SentSlab(q.buffer, k) {
		return
	}
	for i := range k {
		d := xsk.Desc{Addr: q.buffer + uint64(i*chunk), Len: uint32(min(chunk, n-i*chunk)), Options: xsk.Continued}
		if i == k-1 {
			d.Options = 0
		}
		q.tx.Set(q.pending+i, d)
	}
	q.pending += k
	q.held = false
}
