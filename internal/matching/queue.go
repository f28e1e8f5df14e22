// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Config describes how large a Queue is, and with whom it works.
type Config struct {
	Receives   int // most receives that are posted or being filled (fi_rx_attr: size)
	Unexpected int // most messages held for which no receive is posted
	// Memory is how many bytes the messages that are held may have, rounded up to
	// whole chunks of ChunkSize (fi_rx_attr: total_buffered_recv). Each message takes
	// whole chunks, for its whole length, but for those of at most InlineSize bytes,
	// which take none.
	Memory int
	Sink   Sink // where completions go
	// Room is called when messages that Admit has refused may find room now: the caller
	// lets each session to which that has happened try its message again. Those that are
	// refused again wait for the next call; only what makes room calls Room, so trying
	// is not endless. It is called with the queue's mutex held: it must not block, and
	// must not call the queue. It may be nil.
	Room func()
}

// Errors of Post. Nothing has changed when they are returned.
var (
	// ErrFull is FI_EAGAIN.
	ErrFull = errors.New("matching: all receives are in use, or the completion queue has no place for another " +
		"completion; read completions and post again, or open the endpoint with a larger size")
	// ErrClosed means that Close came first.
	ErrClosed = errors.New("matching: the receive context is closed; post to an open one")
	// ErrMulti is about a receive that cannot be a multi-receive.
	ErrMulti = errors.New("matching: a multi-receive wants one buffer, of at least MinFree bytes, and is not a " +
		"claim; post it in another way")
	// ErrNotClaimed means that no message is claimed for the context of a claim.
	ErrNotClaimed = errors.New("matching: no message is claimed for this context: its session may have ended; peek " +
		"with FI_CLAIM first, and retrieve each message once")
)

// Queue is the posted receives and the unexpected messages of one receive context. Its
// methods may be called by several goroutines at once.
type Queue struct {
	cfg Config

	// starved is set when a multi-receive found no place in the completion queue.
	starved atomic.Bool

	mu       sync.Mutex
	closed   bool
	waiting  bool             // a message was refused, and Room was not called since
	sequence uint64           // of the last receive posted
	posted   [2]list[receive] // untagged, tagged: wait for messages, in posting order
	held     [2]list[message] // untagged, tagged: unexpected, in order of arrival
	claimed  list[message]    // held, and claimed, in order of claiming
	receives list[receive]    // not in use
	messages list[message]    // not in use
	inflows  list[Inflow]     // not closed
	behind   int              // receives that are behind
	places   int              // taken in the sink, and neither returned nor filled
	reserved int              // receives that are reserved, of those not in use; each has a place
	memory   memory
	leased   Room // given away for messages that are held; its bytes are not among memory.free
	cramped  bool // a message was refused for want of room that is held, and Room was not called since
	done     Done // the completion that is being delivered
}

// New returns an empty queue.
func New(cfg Config) *Queue {
	q := &Queue{cfg: cfg}
	q.memory.free = chunksFor(cfg.Memory)
	nodes := make([]receive, cfg.Receives)
	for i := range nodes {
		nodes[i].at.of = &nodes[i]
		q.receives.pushBack(&nodes[i].at)
	}
	slots := make([]message, cfg.Unexpected)
	for i := range slots {
		slots[i].at.of = &slots[i]
		q.messages.pushBack(&slots[i].at)
	}
	return q
}

// Freed tells the queue that the sink has places again: completions have been read, or
// another user of the sink has returned places. It costs next to nothing unless a
// multi-receive waits for a place.
func (q *Queue) Freed() {
	if !q.starved.Load() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starved.Store(false)
	q.catchUp()
	q.makeRoom()
}

// Close cancels every receive, also those into which a message is going, and drops the
// messages that are held; the rest of a message that has begun is dropped as it comes.
// Nothing is posted or admitted from now on.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed, q.waiting = true, false
	for e := q.inflows.first; e != nil; e = e.next {
		if m := e.of.current; m != nil && m.into != nil {
			q.detach(m)
		}
	}
	for i := range q.posted {
		for e := q.posted[i].first; e != nil; e = q.posted[i].first {
			q.cancel(e.of)
		}
		for e := q.held[i].first; e != nil; e = q.held[i].first {
			q.drop(e.of)
		}
	}
	for e := q.claimed.first; e != nil; e = q.claimed.first {
		q.drop(e.of)
	}
}

// detach takes a message that is still coming away from its receive, because the queue
// is being closed. A receive that does not wait for messages is cancelled when the last
// message has left it.
func (q *Queue) detach(m *message) {
	n := m.into
	m.into, m.discarded = nil, true
	n.filling--
	if !q.waits(n) && n.filling == 0 {
		q.cancel(n)
		return
	}
	q.returnPlace()
}

// makeRoom has the messages that were refused tried again.
func (q *Queue) makeRoom() {
	if q.waiting && q.cfg.Room != nil {
		q.cfg.Room()
	}
	q.waiting, q.cramped = false, false
}

// takePlace takes a place in the sink for another message of a multi-receive. The
// second attempt is for a reader of completions that came between the first one and the
// mark, and did not see the mark.
func (q *Queue) takePlace() bool {
	ok := q.cfg.Sink.Take()
	if !ok {
		q.starved.Store(true)
		ok = q.cfg.Sink.Take()
	}
	if ok {
		q.places++
	}
	return ok
}

// returnPlace gives a place back to the sink.
func (q *Queue) returnPlace() {
	q.places--
	q.cfg.Sink.Return()
}

// deliver fills a place with q.done, and lets go of what that refers to.
func (q *Queue) deliver() {
	q.places--
	q.cfg.Sink.Deliver(&q.done)
	q.done = Done{}
}
