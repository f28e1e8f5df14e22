// SPDX-License-Identifier: Apache-2.0

package engine

// flight is an operation that the engine has taken, until it completes: the engine's own
// copy of the submission, and what is known of it. It lies in the array of its ring, and
// belongs to the engine's thread.
//
// A simple operation touches the first two cache lines alone: thousands are in flight.
type flight struct {
	ring    *Ring  // nil for a stand-in, and for a marker: see quiet
	sent    uint64 // elements packed
	pending uint32 // fragments in flight
	ran     bool   // some part ran, or may have
	failed  bool
	queued  bool // in the remote's queue
	noted   bool // with FlagData: the notice has been packed
	Submission

	next   *flight            // in the remote's queue
	later  *Later             // of a stand-in: where the outcome will be told
	extent int                // index of the first of Extents with elements to pack
	bad    Result             // the first failure, when failed
	inline [InlineResult]byte // the result, if there is no other place for it
	// with FlagData: the unit that the records are in, see conn.nextUnit; with a
	// guest ring: its number of the peer
	by      uint32
	covered uint32 // with FlagData: how many records have been packed
	within  uint32 // elements packed of Extents[extent]
	long    bool   // memory for a long list of extents was afforded
	leaving bool   // of a VerbWait: its caller has let it go
	_       [2]byte
}

// begin prepares for an operation.
func (f *flight) begin() {
	f.sent, f.within, f.pending = 0, 0, 0
	f.ran, f.failed, f.queued, f.leaving = false, false, false, false
}

// fail records that a part of the operation failed. The first failure is the one
// reported, unless a later one is less certain.
func (f *flight) fail(r Result) {
	if f.message() && !f.packed() {
		r.Outcome, r.Later = NotExecuted, nil // what is not sent whole does not arrive
	}
	if r.Outcome == Unknown || r.Outcome == Restarted {
		f.ran = true
	}
	if !f.failed || r.Outcome > f.bad.Outcome {
		f.bad = r
	}
	f.failed = true
	if f.Flags&FlagStream != 0 {
		f.Stream.stir()
	}
}

// whole reports whether no part of the operation has still to be sent.
func (f *flight) whole() bool { return f.failed || f.packed() }

// packed reports whether every part of the operation has been packed.
func (f *flight) packed() bool {
	return f.sent >= f.elements() && (!f.notices() || f.noted)
}

// count returns the number of elements.
func (f *flight) count() uint64 {
	if f.Count == 0 && f.Flags&FlagStream != 0 {
		return f.Stream.Elements
	}
	return uint64(f.Count)
}

// elements returns the number of units that pack has to place.
func (f *flight) elements() uint64 { return f.Verb.Elements(f.count()) }

// bytes returns the length that the completion reports.
func (f *flight) bytes() int {
	if n := f.count(); f.Count == 0 && n > 0 { // elements of so many are bytes
		return int(n)
	}
	return f.Entry.bytes()
}

// result returns where the result goes.
func (f *flight) result() []byte {
	if f.Result != nil {
		return f.Result
	}
	return f.inline[:min(f.resultLen(), InlineResult)]
}

// finish delivers the completion and recycles the flight.
func (f *flight) finish() {
	var r Result
	if f.failed {
		if r = f.bad; r.Outcome == NotExecuted && f.ran && !f.message() {
			r.Outcome = Unknown // a part of the array did run
		}
	}
	switch {
	case f.ring != nil:
		f.ring.complete(f, r)
	case f.later != nil:
		f.later.settle(f, r)
	default:
		f.finishMarker()
	}
}
