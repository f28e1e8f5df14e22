// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

// A host ring measures the time of a guest's operations, from the round that took the
// entry to the round that wrote the completion. It times one operation at a time, so that
// the others cost nothing: the first that a call of Take takes. That one is marked as
// having something in rest, at which done looks anyway. Messages are left out, because
// they wait for the receiver, and so are streams, because they wait for the guest.

// Times are those of the operations that a host ring has timed. They belong to the
// engine's thread, and begin anew when another host takes over.
type Times struct {
	Timed uint64 // operations
	Took  uint64 // by these, nanoseconds
}

// toTime returns the operation that the next entry will become; nil if that one is not to
// be timed.
func (f *HostRing) toTime() *op {
	if f.timing || len(f.aside) > 0 || len(f.free) == 0 {
		return nil
	}
	return f.free[len(f.free)-1]
}

// time begins to time an operation that the entry at a position of the ring has become.
// The guest may have changed the entry meanwhile. Then the time may be that of a message
// or a stream.
func (f *HostRing) time(o *op, position uint64) {
	verb := f.segment.entries[position&uint64(len(f.ops)-1)].Verb
	if f.taken == position || o.peer == nil || o.watch || o.more && o.stream != nil || !verb.Array() {
		return
	}
	if o.began = f.eng.Now(); o.began != 0 {
		f.timing, o.more = true, true
	}
}

// timed counts the time of an operation whose completion is written, if it was measured.
func (f *HostRing) timed(o *op) {
	if o.began == 0 {
		return
	}
	took := f.eng.Now() - o.began
	f.eng.RingOps().Add(took)
	f.Times.Timed++
	f.Times.Took += uint64(took)
	o.began, f.timing = 0, false
}
