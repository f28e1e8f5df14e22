// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"math"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Messages can come by another process, while the queue is here. That process need not
// ask about each message if it has a lease: room for messages that are held, which
// nothing else takes until a message comes for it, or it is given back.

// Room is room for messages that are held.
type Room struct {
	Messages uint32
	Bytes    uint32 // of memory: each message takes whole chunks, as Config.Memory says
}

// Spend takes the room for a message of length bytes, and returns false if there is too
// little.
func (r *Room) Spend(length uint64) bool {
	bytes := uint64(0)
	if length > InlineSize {
		bytes = (min(length, math.MaxUint32) + ChunkSize - 1) / ChunkSize * ChunkSize
	}
	if r.Messages == 0 || bytes > uint64(r.Bytes) {
		return false
	}
	r.Messages--
	r.Bytes -= uint32(bytes)
	return true
}

// Add adds other room, as far as numbers go.
func (r *Room) Add(other Room) {
	r.Messages += min(other.Messages, math.MaxUint32-r.Messages)
	r.Bytes += min(other.Bytes, math.MaxUint32-r.Bytes)
}

// Lease gives room away, all that there is. If all is false it does so only when that is
// at least half of what the queue has of messages or of memory, so that it is worth
// telling. A message that waits for room comes first: then there is none. Lease, Reclaim
// and AdmitLeased are called between Begin and End.
func (in *Inflow) Lease(all bool) (r Room) {
	q := in.q
	messages := q.cfg.Unexpected - q.holding() - int(q.leased.Messages)
	chunks := min(q.memory.free, int((math.MaxUint32-q.leased.Bytes)/ChunkSize)) // all that is leased fits in 32 bits
	worth := all || 2*messages >= q.cfg.Unexpected || q.cfg.Memory > 0 && 2*chunks >= chunksFor(q.cfg.Memory)
	if q.closed || q.cramped || !worth || messages <= 0 && chunks == 0 {
		return r
	}
	r = Room{uint32(max(messages, 0)), uint32(chunks * ChunkSize)}
	q.leased.Add(r)
	q.memory.free -= chunks
	return r
}

// Reclaim takes back room that was leased and has not been used.
func (in *Inflow) Reclaim(r Room) { in.q.reclaim(r) }

// ReclaimAll takes back all of it: no lease is left.
func (q *Queue) ReclaimAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reclaim(q.leased)
}

func (q *Queue) reclaim(r Room) {
	r.Messages, r.Bytes = min(r.Messages, q.leased.Messages), min(r.Bytes, q.leased.Bytes)
	if r == (Room{}) {
		return
	}
	q.leased.Messages -= r.Messages
	q.leased.Bytes -= r.Bytes
	q.memory.free += int(r.Bytes / ChunkSize)
	q.makeRoom()
}

// AdmitLeased is Admit for a message that comes for room that was leased: it need not
// wait. A message for which there is no such room is dropped as it comes.
func (in *Inflow) AdmitLeased(w *wire.Message) {
	q := in.q
	before := q.leased
	if q.closed || !q.leased.Spend(w.Length) {
		return
	}
	q.memory.free += int((before.Bytes - q.leased.Bytes) / ChunkSize)
	m := q.newMessage(w, in.from)
	m.to = in.To
	if !q.accept(m, false) { // for a multi-receive that lacks a place, or behind others for it
		if n := q.find(m); n != nil {
			q.setBehind(n, true)
		}
		q.hold(m)
	}
	in.current = m
	if m.into != nil && q.cramped {
		q.makeRoom() // the room that it came for
	}
}
