// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/node"
)

// Completion is an entry of a completion queue: the operation posted with Context has
// ended. The result, if any, is in its buffer. In a queue that is bound with BindRecv it
// may instead tell of an operation of a peer with data (FlagRemoteCQData): memory shows
// all of it, and all operations that the same endpoint of the peer posted before it to
// this endpoint. Then Flags has CompletionRemoteCQData, Endpoint is the target, and there
// is no Context.
//
// There is one format, which has what the formats of fi_cq(3) have, and what
// fi_cq_readfrom adds: op_context is Context, flags is Flags, len is Bytes, data is Data,
// buf is Offset, tag is Tag, and src_addr is Source. Each is filled in every completion.
// In the entry of an error (fi_cq_err_entry) err is OpError.Errno, prov_errno is
// OpError.ProvErrno, olen is Overflow, and err_data is OpError.Peer.
type Completion struct {
	Context  any
	Err      error     // nil, or an *OpError; only ReadErr returns entries with one
	Endpoint *Endpoint // that posted the operation: endpoints can share a queue
	Flags    CompletionFlags
	// Source is the peer that the completion is from: the Msg.Dest of the operation;
	// or, of an operation of a peer, its endpoint, if that is in the address vector of
	// Endpoint by the kind of address that it uses, and otherwise NoAddress; see
	// EndpointAttr.SourceErr.
	Source Address
	// of the result, or of the operand if there is none; of all elements of a peer's
	// operation; of a message
	Bytes int
	Data  uint64 // of a peer's operation or message; otherwise 0
	Tag   uint64 // of a message received, if it has one
	// bytes of a message that did not fit the buffer of its receive (olen); of a tagged
	// atomic all or none
	Overflow int
	// of a message in the buffer of a receive with FlagMultiRecv (buf), or of the
	// elements of a tagged atomic in any, bytes
	Offset int
}

// CQAttr are the attributes of a completion queue.
type CQAttr struct {
	// Size is the most operations that may be outstanding, or completed but not read;
	// more are refused with ErrAgain. Operations whose success makes no entry do not
	// count; they are refused only while as many failures of such operations are unread.
	// With BindRecv there is room for as many operations of peers besides, of which more
	// have to wait, and for as many receives, of which more are refused with ErrAgain. It
	// is rounded up to a power of two; 1024.
	Size int
	Wait WaitObject // how callers wait; WaitUnspec
}

// CompletionQueue collects completions of the endpoints bound to it; fi_cq(3). It
// never overflows: an operation whose success makes an entry is accepted only if the
// entry has a place, and failures of others find room in any case, so there is no
// FI_EOVERRUN. One goroutine reads at a time; any number may post, and any number may
// wait. Endpoints that share a queue share a poller.
type CompletionQueue struct {
	object
	entries  []entry
	pointers []pointers // the parts of completions that hold pointers
	mask     uint64
	size     int64

	reserved gauge[int64] // places promised or taken; posters add, the reader and the engine subtract
	owner    atomic.Pointer[node.Stepper]

	_        [64]byte
	lent     int64         // places reserved for goroutines that post to the engine directly; engine's thread
	written  uint64        // entries written; engine's thread
	tail     gauge[uint64] // entries shown to the reader; engine's thread
	_        [40]byte
	head     gauge[uint64] // entries read; the reader
	reading  atomic.Bool   // see enter
	sleepers sleepers

	failures   failures
	arrivals   atomic.Pointer[arrivals] // nil unless the queue is bound with BindRecv
	peersFirst bool                     // the next Read begins with those; the reader
	receives   receiveQueues            // of messages
}

// entry is the part of a completion without pointers. It is small, since all entries of a
// full queue go through the cache.
type entry struct {
	length uint64
	source Address
	flags  CompletionFlags
}

// entryOf returns the entry for a completion of the engine's.
func entryOf(c *engine.Completion) entry {
	return entry{c.Length, Address(c.Cookie), completionFlags[c.Flags]}
}

// pointers is the part of a completion that holds pointers.
type pointers struct {
	context any
	ep      *endpoint // stays set when the entry has been read
	err     *OpError  // nil for success
}

// take moves the completion at a place of the queue into the reader's.
func (q *CompletionQueue) take(c *Completion, at uint64) {
	e, b := &q.entries[at], &q.pointers[at]
	c.set(e, b)
	b.context = nil
}

// set makes c the completion that an entry describes, without its error.
func (c *Completion) set(e *entry, b *pointers) {
	c.Context, c.Err, c.Endpoint = b.context, nil, &b.ep.handle
	c.Flags, c.Source = e.flags, e.source
	c.Bytes, c.Data, c.Tag, c.Overflow, c.Offset = int(e.length), 0, 0, 0, 0
}

// NewCompletionQueue makes a completion queue (fi_cq_open).
func (d *Domain) NewCompletionQueue(attr CQAttr) (*CompletionQueue, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	n, err := queueSize("completion queue: Size", attr.Size)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	q := &CompletionQueue{entries: make([]entry, n), pointers: make([]pointers, n), mask: uint64(n - 1), size: int64(n)}
	d.isolate([]*gauge[int64]{&q.reserved, &q.failures.shown}, []*gauge[uint64]{&q.tail, &q.head})
	if err := q.sleepers.open("completion queue", attr.Wait); err != nil {
		return nil, err
	}
	q.open(d, "completion queue", &q.sleepers)
	return q, nil
}

// Attr returns the attributes in force.
func (q *CompletionQueue) Attr() CQAttr { return CQAttr{Size: int(q.size), Wait: q.sleepers.kind} }

// bind adds an endpoint, and returns the stepper that it has to use: endpoints that share
// a queue share an engine, so that the queue has one writer.
func (q *CompletionQueue) bind(st *node.Stepper) (*node.Stepper, error) {
	if err := q.hold(); err != nil {
		return nil, err
	}
	q.owner.CompareAndSwap(nil, st)
	return q.owner.Load(), nil
}

// reserve takes a place for a future completion.
func (q *CompletionQueue) reserve() bool {
	if q.reserved.Add(1) <= q.size {
		return true
	}
	q.reserved.Add(-1)
	return false
}

// borrow takes a place for a future completion from those that are reserved in advance,
// so that goroutines that post to the engine directly need no atomic operation for each.
// A small queue reserves no places in advance. Engine's thread.
func (q *CompletionQueue) borrow() bool {
	if q.lent == 0 && !q.advance() {
		return false
	}
	q.lent--
	return true
}

// advance reserves places in advance.
func (q *CompletionQueue) advance() bool {
	n := max(1, min(q.size/16, mostLent))
	if over := q.reserved.Add(n) - q.size; over > 0 {
		over = min(n, over) // further ones belong to another goroutine, which is about to give them back
		n -= over
		q.reserved.Add(-over)
	}
	q.lent = n
	return n > 0
}

// mostLent is the most places that are reserved in advance at a time.
const mostLent = 64

// repay gives back the places that are reserved in advance if there are no others: then
// goroutines that post through the ring need them. The queue has been full since the
// latest operation took its place, so a look whenever operations complete is enough.
// Engine's thread.
func (q *CompletionQueue) repay() {
	if q.lent > 0 && q.reserved.Load() >= q.size {
		q.reserved.Add(-q.lent)
		q.lent = 0
	}
}

// push writes a completion, whose place was reserved. Engine's thread.
func (q *CompletionQueue) push(ep *endpoint, context any, c *engine.Completion, err *OpError) {
	at := q.written & q.mask
	q.entries[at] = entryOf(c)
	b := &q.pointers[at]
	b.context = context
	if b.ep != ep { // usually it is the same endpoint, and nothing is written
		b.ep = ep
	}
	if err != nil {
		b.err = err
	}
	q.written++
}

// pushAll writes the completions of operations that succeeded; c is what they have
// in common. Engine's thread.
func (q *CompletionQueue) pushAll(ep *endpoint, done []*engine.Submission, c *engine.Completion) {
	e := entryOf(c)
	for _, s := range done {
		if s.Cookie&silent != 0 {
			continue
		}
		at := q.written & q.mask
		q.written++
		e.source = Address(s.Cookie)
		q.entries[at] = e
		b := &q.pointers[at]
		b.context = s.Context
		if b.ep != ep {
			b.ep = ep
		}
	}
}

// pushRun is pushAll for a run. Engine's thread.
func (q *CompletionQueue) pushRun(ep *endpoint, done []engine.Follower, c *engine.Completion) {
	if c.Cookie&silent != 0 {
		return
	}
	e := entryOf(c)
	for i := range done {
		at := q.written & q.mask
		q.written++
		q.entries[at] = e
		b := &q.pointers[at]
		b.context = done[i].Context
		if b.ep != ep {
			b.ep = ep
		}
	}
}

// show lets the reader see the completions that were written. Engine's thread.
func (q *CompletionQueue) show() {
	q.repay()
	t := q.written
	if failed := q.failures.show(); !failed && q.tail.Load() == t {
		return
	}
	q.tail.Store(t)
	q.sleepers.raise(q)
}

// Read takes up to len(c) successful completions (fi_cq_read) and returns their number,
// which may be 0. When an error completion is next it returns ErrErrorPending: take it
// with ReadErr. When the queue is closed, and all its completions have been read, it
// returns ErrClosed, as Wait does. With manual progress the call makes progress.
func (q *CompletionQueue) Read(c []Completion) (int, error) {
	if err := q.there(); err != nil {
		return 0, err
	}
	if st := q.owner.Load(); st != nil {
		st.Start()
	}
	if !q.enter() {
		return 0, nil // another goroutine is reading: nothing is left for this one
	}
	n, err := q.read(c)
	q.leave()
	return n, err
}

// read is Read for the reader.
func (q *CompletionQueue) read(c []Completion) (int, error) {
	a := q.arrivals.Load()
	if q.tail.Load() == q.head.Load() && q.failures.shown.Load() == 0 && a.shown(1) == 0 && q.dom.Progress() == 0 {
		return 0, q.ended() // what another thread shows meanwhile is for the next call
	}
	if a == nil {
		return q.readOwn(c)
	}
	n, err := q.readBoth(c, a)
	q.receives.freed(n)
	return n, err
}

// enter begins to read, unless another goroutine is reading; leave ends it. A caller that
// makes no two calls at a time reads alone.
func (q *CompletionQueue) enter() bool {
	return q.head.alone || q.reading.CompareAndSwap(false, true)
}

func (q *CompletionQueue) leave() {
	if !q.head.alone {
		q.reading.Store(false)
	}
}

// readBoth reads completions of both kinds. Every other time it begins with those of
// peers, so that none of the two keeps the other, or an error, waiting.
func (q *CompletionQueue) readBoth(c []Completion, a *arrivals) (n int, err error) {
	more := 0
	if q.peersFirst = !q.peersFirst; q.peersFirst {
		if n, err = a.read(c); err == nil {
			more, err = q.readOwn(c[n:])
		}
	} else if n, err = q.readOwn(c); err == nil {
		more, err = a.read(c[n:])
	}
	if n+more > 0 {
		err = nil // the error is next
	}
	return n + more, err
}

// readOwn takes completions of operations that the endpoints of the queue have posted.
func (q *CompletionQueue) readOwn(c []Completion) (int, error) {
	head := q.head.Load()
	n := int(q.tail.Load() - head)
	if q.failures.shown.Load() > 0 {
		if n = q.beforeFailure(head, n); n == 0 && len(c) > 0 {
			return 0, ErrErrorPending
		}
	}
	n = min(n, len(c))
	for i := range n {
		at := (head + uint64(i)) & q.mask
		if q.pointers[at].err != nil {
			if i == 0 {
				return 0, ErrErrorPending
			}
			n = i
			break
		}
		q.take(&c[i], at)
	}
	q.consume(head, n)
	return n, nil
}

func (q *CompletionQueue) consume(head uint64, n int) {
	q.head.Store(head + uint64(n))
	q.reserved.Add(-int64(n))
}

// Close ends the use of the queue. It reports ErrBusy as long as an endpoint is bound.
// Completions that have not been read can still be read. Callers that wait return with an
// error, and the file descriptor is closed. Closing twice is no error.
func (q *CompletionQueue) Close() error {
	if err := q.there(); err != nil {
		return err
	}
	err := q.close()
	if err == nil {
		q.sleepers.close()
		q.rouse()
	}
	return err
}
