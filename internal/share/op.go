// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import "github.com/xdpfab/xdpfab/internal/engine"

// op is an operation of the guest that is under way. An operation on one word needs no
// more than what lies here, on one cache line: thousands are under way.
type op struct {
	tag   uint64
	peer  *Target
	value [8]byte // the result, if it is that long
	watch bool
	moves bool // a watch that another host continues: it has no completion
	more  bool // there is something in rest
	*rest
	_ [24]byte
}

// rest is what other operations need.
type rest struct {
	list    uint64             // bytes of its extents
	result  []byte             // its place in the arena, or nil
	held    int                // bytes of the arena that the operation has, if there is such a place
	outcome engine.Result      // of one that was open, when it is known
	data    []byte             // likewise
	ready   *engine.Completion // the second one, of one that was open at another host
	stream  *stream            // of one that comes part by part
	wait    wait               // of one that waits at its target; otherwise 0
	began   int64              // when this one was taken, if it is timed; otherwise 0
}

// done frees an operation.
func (f *HostRing) done(o *op) {
	o.peer, o.watch, o.moves = nil, false, false
	if o.more {
		f.timed(o)
		f.lists.bytes -= o.list
		f.waitEnds(o)
		*o.rest, o.more = rest{}, false
	}
	f.free = append(f.free, o)
}
