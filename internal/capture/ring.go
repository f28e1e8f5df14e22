// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"sync/atomic"
)

// ring holds the packets that one thread has copied and another one has not taken yet:
// for each its head, as in a stream, and the bytes that were captured.
type ring struct {
	memory  []byte        // its length is a power of two
	put     atomic.Uint64 // bytes ever written; the writer's
	taken   atomic.Uint64 // bytes ever read; the reader's
	dropped atomic.Uint64 // packets that found no room
}

// add copies a packet, or counts it if there is no room.
func (r *ring) add(p *Packet) {
	var head [headLen]byte
	at := r.put.Load()
	if at+headLen+uint64(len(p.Data))-r.taken.Load() > uint64(len(r.memory)) {
		r.dropped.Add(1)
		return
	}
	p.encode(&head)
	r.write(at, head[:])
	r.write(at+headLen, p.Data)
	r.put.Store(at + headLen + uint64(len(p.Data)))
}

// write copies bytes to a place, which may lie across the end of the memory.
func (r *ring) write(at uint64, b []byte) {
	n := copy(r.memory[at&uint64(len(r.memory)-1):], b)
	copy(r.memory, b[n:])
}

// read appends n bytes from a place to b.
func (r *ring) read(b []byte, at uint64, n int) []byte {
	from := int(at & uint64(len(r.memory)-1))
	first := min(n, len(r.memory)-from)
	b = append(b, r.memory[from:from+first]...)
	return append(b, r.memory[:n-first]...)
}

// take appends the oldest packet, with its head, to b. There must be one.
func (r *ring) take(b []byte) []byte {
	at := r.taken.Load()
	var space [headLen]byte
	head := r.read(space[:0], at, headLen)
	n := headLen + int(binary.LittleEndian.Uint32(head[headCaptured:]))
	b = r.read(b, at, n)
	r.taken.Store(at + uint64(n))
	return b
}
