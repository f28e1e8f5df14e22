// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

// The time of a guest's operations, from the round that took the entry to the round that
// wrote the completion. One operation of a guest is timed at a time, so that others cost
// nothing: it is the first that a call of Take takes, and is marked as one with something
// in rest, at which done looks anyway. Messages wait for the receiver, and streams for
// the guest, so that these are left out.

// Times are those of the operations that a host ring has timed. They belong to the
// engine's thread, and begin anew when another host takes over.
type Times struct {
	Timed uint64 // operations
	Took  uint64 // by these, nanoseconds
}

// toTime returns the operation that the next entry becomes, if that is to be timed; nil
// for none.
func (f *HostRing) toTime() *op {
	if f.timing || len(f.aside) > 0 || len(f.free) == 0 {
		return nil
	}
	return f.free[len(f.free)-1]
}

// time begins to time an operation that the entry at a position of the ring has become.
// The guest can change the entry by now, which may add a time that is not of such an
// operation.
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
