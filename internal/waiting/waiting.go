// SPDX-License-Identifier: Apache-2.0

// Package waiting has the operations of peers that wait for words of registered memory:
// compare atomics that run, once, when their conditions hold.
//
// The notes of a region are its Queues, which watch the region. A queue is one word, one
// operation and one comparand, and serves its notes in the order in which they came. The
// thread that applies operations to the region calls Changed, which looks at the first
// note of each queue, and runs those whose conditions hold. A queue passes by the notes
// of a session that has been silent for some time, until the session is heard again: its
// program may be dead, and would never free the lock that it got.
//
// No wake-up is lost. A note joins and then looks at the word. The thread that changes
// the word looks afterwards for notes that have joined. One of the two sees the other.
package waiting

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	ops "github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
)

// State is how far a note is.
type State uint32

// The states. A note is new at first, and ends once.
const (
	New State = iota
	Parked
	Ran       // once; Value is the value before
	Cancelled // it never ran, nor will it, as the next two
	Late      // its limit has passed
	Closed    // its region is closed
)

// Owner has notes. Any thread may call its methods, with locks of this package held; they
// must not block, nor call this package.
type Owner interface {
	// Wake is called when a parked note has run, or its region has been closed.
	Wake()
	// Silent reports whether the program that waits has not been heard for some time. The
	// owner calls Note.Look when that changes.
	Silent() bool
	// Soon has f called, on another thread or later.
	Soon(f func())
}

// MaxWord is the size of the largest word that can be waited for, bytes.
const MaxWord = 8

// Note is one operation. Its owner fills in the first part, and leaves it alone from then
// on.
type Note struct {
	Op               ops.Op
	Datatype         ops.Datatype
	Kernel           ops.Kernel // of the two
	Target           []byte     // the word
	Operand, Compare [MaxWord]byte
	Owner            Owner

	at    *Queues
	state atomic.Uint32
	value [MaxWord]byte // before it ran; written before the state
}

// State returns how far the note is.
func (n *Note) State() State { return State(n.state.Load()) }

// Value returns the value before the note ran.
func (n *Note) Value() uint64 { return binary.LittleEndian.Uint64(n.value[:]) }

// Waits reports whether an operation can wait: it is a compare operation with a
// condition, on integers or floats of up to MaxWord bytes.
func Waits(op ops.Op, dt ops.Datatype) bool {
	conditional := op >= ops.Cswap && op <= ops.CswapGT || op == ops.SumAtMost || op == ops.DiffAtLeast
	return conditional && dt < ops.NumDatatypes && dt.Size() <= MaxWord && ops.Valid(ops.Compare, op, dt)
}

// queue has the notes that wait for one word by one operation and comparand, in the order
// in which they came.
type queue struct{ notes []*Note }

func (q *queue) takes(n *Note) bool {
	f := q.notes[0]
	return &f.Target[0] == &n.Target[0] && f.Op == n.Op && f.Datatype == n.Datatype && f.Compare == n.Compare
}

// Queues are the notes that wait for words of one region. They implement mr.Watcher.
type Queues struct {
	region *mr.Region
	count  atomic.Int64 // notes that wait, and one that is about to

	mu     sync.Mutex // held while one looks at the memory
	queues []*queue   // none is empty; in the order in which their first notes came
	over   bool       // the region is closed: its memory may be gone
}

// Of returns the queues of a region, or nil if it is closed.
func Of(r *mr.Region) *Queues {
	if w := r.Queues(); w != nil {
		return w.(*Queues)
	}
	r.SetQueues(&Queues{region: r})
	if w := r.Queues(); w != nil { // perhaps another thread's
		return w.(*Queues)
	}
	return nil
}

// Enter has a new note run if nobody is before it and its condition holds. Otherwise it
// waits, if it may; if it may not, it stays new. The caller counts it if it has run. It
// may be called while the region cannot be closed, as by its readers.
func (w *Queues) Enter(n *Note, may bool) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		n.state.Store(uint32(Closed))
		return Closed
	}
	i := slices.IndexFunc(w.queues, func(q *queue) bool { return q.takes(n) })
	switch {
	case !may:
		if i < 0 {
			n.run()
		}
		return n.State()
	case i >= 0:
		w.count.Add(1)
		w.queues[i].notes = append(w.queues[i].notes, n)
	default:
		w.count.Add(1) // it has joined: a thread that changes the word waits for the lock from here on
		if n.run() {
			w.count.Add(-1)
			return Ran
		}
		w.queues = append(w.queues, &queue{[]*Note{n}})
	}
	n.at = w
	n.state.Store(uint32(Parked))
	return Parked
}

// run runs the note if its condition holds.
func (n *Note) run() bool {
	size := len(n.Target)
	var before [MaxWord]byte
	n.Kernel(n.Target, n.Operand[:size], n.Compare[:size], before[:size])
	if !ops.Applied(n.Op, n.Datatype, before[:size], n.Operand[:size], n.Compare[:size]) {
		return false
	}
	n.value = before
	n.state.Store(uint32(Ran))
	return true
}

// At returns the queues in which the note waits, or has waited.
func (n *Note) At() *Queues { return n.at }

// Look looks at the note and those behind it.
func (n *Note) Look() {
	if w := n.at; w != nil {
		w.region.Changed()
	}
}

// Ended returns a note that has ended elsewhere.
func Ended(s State, value uint64) *Note {
	n := new(Note)
	n.state.Store(uint32(s))
	binary.LittleEndian.PutUint64(n.value[:], value)
	return n
}

// End ends a note that waits. It returns the state in which the note is now: it may have
// run before.
func (n *Note) End(why State) State {
	if w := n.at; w != nil {
		w.end(n, why)
	}
	return n.State()
}

func (w *Queues) end(n *Note, why State) {
	w.mu.Lock()
	if n.State() != Parked {
		w.mu.Unlock()
		return
	}
	n.state.Store(uint32(why))
	for i, q := range w.queues {
		if j := slices.Index(q.notes, n); j >= 0 {
			w.remove(i, j)
			break
		}
	}
	w.mu.Unlock()
	w.region.Changed() // with another operand, the condition of the one behind it may hold
}

// remove takes note j out of queue i.
func (w *Queues) remove(i, j int) {
	q := w.queues[i]
	w.count.Add(-1)
	if j == 0 {
		q.notes[0] = nil
		q.notes = q.notes[1:]
	} else {
		q.notes = slices.Delete(q.notes, j, j+1)
	}
	if len(q.notes) == 0 {
		w.queues = slices.Delete(w.queues, i, i+1)
	}
}

// Changed implements mr.Watcher. The region tells its other watcher afterwards, so that
// it sees what has run here.
func (w *Queues) Changed() {
	if w.count.Load() == 0 {
		return
	}
	ran, more := w.look()
	if len(ran) == 0 {
		return
	}
	bytes := 0
	for _, n := range ran {
		bytes += len(n.Target)
		n.Owner.Wake()
	}
	w.region.Count(mr.Tally{Fetching: uint64(len(ran)), FetchingBytes: uint64(bytes)})
	if o := w.region.Observer(); o != nil {
		o.Touched(len(ran), 0, bytes, 0)
	}
	if more {
		ran[0].Owner.Soon(w.region.Changed)
	}
}

// AtOnce is the most notes that one look runs, since its thread has other work.
const AtOnce = 64

// look runs those whose conditions hold, until none does. If they are more than it may
// run, more is true.
func (w *Queues) look() (ran []*Note, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil, false
	}
	for before := -1; len(ran) > before; { // one that runs may let another run
		before = len(ran)
		for i := 0; i < len(w.queues); {
			j := w.queues[i].next()
			if j < 0 {
				i++
				continue
			}
			if len(ran) == AtOnce {
				return ran, true
			}
			n := w.queues[i].notes[j]
			if !n.run() {
				i++
				continue
			}
			ran = append(ran, n)
			w.remove(i, j) // the next of the queue, or the next queue, is at i now
		}
	}
	return ran, false
}

// next returns which note is next: the first that is not silent, or -1.
func (q *queue) next() int {
	return slices.IndexFunc(q.notes, func(n *Note) bool { return !n.Owner.Silent() })
}

// Closed implements mr.Watcher.
func (w *Queues) Closed() {
	w.mu.Lock()
	w.over = true
	queues := w.queues
	w.queues = nil
	w.count.Store(0)
	for _, q := range queues {
		for _, n := range q.notes {
			n.state.Store(uint32(Closed))
		}
	}
	w.mu.Unlock()
	for _, q := range queues {
		for _, n := range q.notes {
			n.Owner.Wake()
		}
	}
}

// Len returns how many notes wait.
func (w *Queues) Len() int { return int(w.count.Load()) }

// Silent returns how many of them are passed by.
func (w *Queues) Silent() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queues {
		for _, x := range q.notes {
			if x.Owner.Silent() {
				n++
			}
		}
	}
	return n
}

// Session is a session whose operations may wait.
type Session interface {
	Owner
	// MayWait reports whether there is room for another note.
	MayWait() bool
	// Park takes a note that waits, of the operation of a number in the frame at hand,
	// for so many microseconds at most. It returns the number of the frame.
	Park(n *Note, index uint8, limit uint32) (psn uint32)
}
