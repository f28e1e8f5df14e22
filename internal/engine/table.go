// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// entry is a session in the table, in either role.
type entry interface {
	// receive takes a frame that names this session. False means that the frame is of
	// another epoch and that nothing was done.
	receive(h *wire.Header, payload []byte) bool
	// tick lets time pass and returns the next deadline, 0 for none.
	tick(now int64) int64
	// shutdown ends the session because the engine closes.
	shutdown()
	place() *slot
}

// slot is what an entry has in either role: its place in the table, and how its frames
// leave.
type slot struct {
	id      wire.SessionID // 0 when not in the table
	pos     int            // index in table.all
	sealer  wire.Sealer    // nil: see Config.Sealer
	path    path           // to the peer
	traffic Traffic        // of sessions
}

// table finds sessions by the index part of their id, and gives ids out. The tag part,
// random and never 0, tells the present holder of an index from those before it. It grows
// while sessions need it, and has at most so many as it was made for, but for those that
// come from another engine, whose table may have been larger.
type table struct {
	lane, queue uint8
	random      func() uint64
	most        int
	byIndex     []entry
	free        []uint16 // unused indexes, the longest unused first
	all         []entry  // the entries, in no order
}

// firstIndexes is how many indexes a table begins with, if it may have as many.
const firstIndexes = 4096

func (t *table) init(lane, queue uint8, most int, random func() uint64) {
	t.lane, t.queue, t.random, t.most = lane, queue, random, most
	t.grow(min(most, firstIndexes))
}

// grow makes room for n indexes.
func (t *table) grow(n int) {
	for i := len(t.byIndex); i < n; i++ {
		t.free = append(t.free, uint16(i))
	}
	t.byIndex = append(t.byIndex, make([]entry, n-len(t.byIndex))...)
}

// left returns how many sessions there is room for.
func (t *table) left() int { return max(0, t.most-len(t.all)) }

// add gives x an id; false means that the table is full.
func (t *table) add(x entry) bool {
	if t.left() == 0 {
		return false
	}
	if len(t.free) == 0 {
		t.grow(min(2*len(t.byIndex), t.most))
	}
	index := t.free[0]
	t.free = t.free[1:]
	tag := 1 + uint32(t.random()%(wire.MaxTags-1))
	t.put(x, wire.NewSessionID(uint32(t.lane), uint32(t.queue), uint32(index), tag))
	return true
}

func (t *table) put(x entry, id wire.SessionID) {
	s := x.place()
	s.id, s.pos = id, len(t.all)
	t.byIndex[id.Index()] = x
	t.all = append(t.all, x)
}

// remove takes x out; its id is free for others.
func (t *table) remove(x entry) {
	s := x.place()
	if s.id == 0 {
		return
	}
	index := s.id.Index()
	t.byIndex[index] = nil
	t.free = append(t.free, index)
	last := t.all[len(t.all)-1]
	t.all[s.pos], last.place().pos = last, s.pos
	t.all[len(t.all)-1] = nil
	t.all = t.all[:len(t.all)-1]
	s.id = 0
}

// place gives x the id that it had in the table of another engine; false means that it is
// of another queue, or that another has it. Settle has to follow.
func (t *table) place(x entry, id wire.SessionID) bool {
	i := int(id.Index())
	if id == 0 || id.Lane() != t.lane || id.Queue() != t.queue {
		return false
	}
	if i >= len(t.byIndex) {
		t.grow(i + 1)
	}
	if t.byIndex[i] != nil {
		return false
	}
	t.put(x, id)
	return true
}

// settle takes the indexes of entries that were placed off the list of the free ones.
func (t *table) settle() {
	t.free = slices.DeleteFunc(t.free, func(i uint16) bool { return t.byIndex[i] != nil })
}

// find returns the session of exactly this id, or nil.
func (t *table) find(id wire.SessionID) entry {
	x, _ := t.lookup(id)
	return x
}

// lookup is find that also returns the slot.
func (t *table) lookup(id wire.SessionID) (entry, *slot) {
	if i := int(id.Index()); i < len(t.byIndex) {
		if x := t.byIndex[i]; x != nil {
			if s := x.place(); s.id == id {
				return x, s
			}
		}
	}
	return nil, nil
}

// snapshot returns the entries, safe against changes of the table.
func (t *table) snapshot() []entry { return append([]entry(nil), t.all...) }
