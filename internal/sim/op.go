// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// forever is the end of an interval that has not ended.
const forever = int64(math.MaxInt64)

// op is one operation and its outcome. All elements of an array get the same
// operand, so that each element counts as an operation on its word.
type op struct {
	peer           *peer
	seq            int           // its place among the operations of its pair
	to             engine.PeerID // the name that it was posted to
	met            uint64        // the life that had answered that name by then, 0 for none
	astray         bool          // that life was over when the engine took the operation
	verb           wire.Verb
	code           uint8
	region         int
	first, count   int // words
	datatype       atomic.Datatype
	value, compare uint64
	fenced         bool
	refused        bool   // addresses memory that every target must refuse
	signal         int    // one more than the word that its signal adds to; 0 for no signal
	lost           bool   // that is in no memory
	named          bool   // it names the registrations that it means
	data           uint64 // its number among those that ask for an event; 0 if it does not
	events         int    // that have come

	call, ret int64 // when posted, when completed
	done      bool
	result    engine.Result
	operand   []byte // the caller's memory, when the engine asked to leave it alone
	buf       []byte // where the engine puts results; overwritten when they have been taken
	got       []value
	completed int64
	// it became known after the completion that the operation ran or not, or that the
	// target restarted
	late      bool
	cancelled bool    // its caller has stopped waiting
	letter    *letter // what it is if it is a message; otherwise nil
}

func (o *op) String() string {
	if o.letter != nil {
		return o.letter.String()
	}
	flags := ""
	if o.data != 0 {
		flags = " data"
	}
	if o.fenced {
		flags += " fenced"
	}
	return fmt.Sprintf("op %d of %v: %v/%d %v words %d+%d of %s, %v operand %d compare %d%s", o.seq, o.peer,
		atomic.Op(o.code), o.verb, o.peer.target, o.first, o.count, regionName(o.region), o.datatype, o.value,
		o.compare, flags)
}

// fetches reports whether the operation returns the values it found.
func (o *op) fetches() bool { return o.verb.Returns() }

// succeeded reports that the operation ran for certain, ran that it may have.
func (o *op) succeeded() bool { return o.done && o.result.Outcome == engine.Success }
func (o *op) mayHaveRun() bool {
	return !o.done || o.result.Outcome == engine.Unknown || o.result.Outcome == engine.Restarted
}

// fill writes the operation into an entry of the submission ring.
func (o *op) fill(e *engine.Submission) {
	o.to = o.peer.eng.ID()
	e.Peer, e.Context = o.to, o
	if o.letter != nil {
		o.letter.fill(e)
		return
	}
	e.Key = o.peer.target.regions[o.region].key()
	e.Offset, e.Count = uint64(strideOf(o.region)*o.first), uint32(o.count)
	e.Verb, e.Opcode, e.Datatype, e.Flags = o.verb, o.code, uint8(o.datatype), 0
	if o.copies() {
		e.Transfer(o.verb, uint32(8*o.count))
	}
	if o.fenced {
		e.Flags = engine.FlagFence
	}
	if o.data != 0 {
		e.Flags |= engine.FlagData
		e.Data = o.data
	}
	if o.refused && o.region == sumRegion {
		e.Key ^= 1 << 40 // of no region
	}
	var operand, compare []byte
	if o.code != uint8(atomic.Read) {
		operand = bytes.Repeat(encode(o.datatype, o.value), o.count)
	}
	if o.copies() && !o.fetches() {
		operand = o.contents()
	}
	if o.verb == wire.VerbCompare {
		compare = bytes.Repeat(encode(o.datatype, o.compare), o.count)
	}
	if o.fetches() {
		o.buf = make([]byte, o.datatype.Size()*o.count)
		scribble(o.buf)
	}
	var copied bool
	if o.divided() {
		copied = e.SetPieces(o.pieces(operand, compare), nil, nil)
	} else {
		copied = e.SetOperands(operand, compare)
		e.Result = o.buf
	}
	if o.signal > 0 {
		o.setSignal(e)
	}
	if copied {
		scribble(operand) // the engine has given it back to the caller
		scribble(compare)
	} else {
		o.operand = operand
	}
}

// divided reports whether the caller's buffers lie in pieces.
func (o *op) divided() bool { return o.count > 2 && o.value%2 == 0 }

// pieces divides the caller's buffers, operands and result at different places; those of
// remote reads and writes in the middle of a word.
func (o *op) pieces(operand, compare []byte) *engine.Pieces {
	size := o.datatype.Size()
	halves := func(b []byte, at int) [][]byte {
		if len(b) == 0 {
			return nil
		}
		cut := at * size
		if o.copies() {
			cut -= 3
		}
		return [][]byte{b[:cut], b[cut:]}
	}
	return &engine.Pieces{Buf: halves(operand, o.count/2), Compare: halves(compare, 1),
		Result: halves(o.buf, o.count/3)}
}

func scribble(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// Complete implements engine.Completer.
func (o *op) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	r := c.Result(later)
	w := o.peer.c.n.w
	w.trace.event("done  %v: outcome %d status %v reason %v", o, r.Outcome, r.Status, r.Reason)
	if o.done {
		w.fail("%v completed twice", o)
		return
	}
	o.done, o.ret, o.completed, o.result = true, w.now, w.now, r
	o.peer.c.outstanding--
	w.pending--
	w.count(outcomeCounters[r.Outcome])
	if !o.mayHaveRun() {
		w.use(o, 0, -1)
	}
	if r.Outcome == engine.Success {
		o.take(o.buf)
	}
	scribble(o.buf) // the caller has its memory back, and uses it for something else
	scribble(o.operand)
	if o.fenced && r.Outcome == engine.Success {
		w.checkFence(o)
	}
	switch {
	case r.Outcome == engine.Restarted:
		o.peer.restarted(o, w.now)
	case r.Reason == session.PeerRestarted:
		told := &o.peer.told // each name of a pair is told
		if o.letter != nil {
			told = &o.peer.toldLetters
		}
		told.note(o.peer.pair, o, w.now)
	}
	if c.Source != o.to {
		w.fail("%v: the completion is from another name, %#x, want %#x", o, c.Source, o.to)
	}
	if r.Outcome == engine.Success && o.refused {
		w.fail("%v succeeded, but nothing allows it", o)
	}
}

// take reads the results of an operation that succeeded.
func (o *op) take(b []byte) {
	for size := o.datatype.Size(); len(b) >= size; b = b[size:] {
		if size >= 4 && bytes.Count(b[:size], []byte{poison}) == size {
			o.peer.c.n.w.fail("%v: result %d is not in place", o, len(o.got))
		}
		o.got = append(o.got, decode(o.datatype, b))
	}
}

// resolve replaces an unknown outcome by the true one, if that has become
// known. It is still unknown when the operation ran: at any time since it was
// posted.
func (o *op) resolve() {
	later, w := o.result.Later, o.peer.c.n.w
	if later == nil {
		return
	}
	select {
	case <-later.Done():
	default:
		if o.peer.life == o.peer.c.n.life {
			w.fail("%v: the outcome is still pending after its peer was closed", o)
		}
		return
	}
	r, data := later.Outcome()
	if r.Outcome == engine.Unknown && r.Later != nil { // it was cancelled first, and given up afterwards
		o.result = r
		o.resolve()
		return
	}
	if r.Outcome == engine.Restarted {
		o.result, o.late = r, true
	}
	if r.Outcome == engine.Unknown || r.Outcome == engine.Restarted {
		return
	}
	w.count(resolvedLater)
	o.result, o.ret, o.late = r, forever, true
	if r.Outcome == engine.Success && o.fetches() {
		o.take(data)
	}
}

var outcomeCounters = [...]counter{
	engine.Success: successes, engine.NotExecuted: notExecuted, engine.Unknown: unknowns, engine.Restarted: restarted,
}
