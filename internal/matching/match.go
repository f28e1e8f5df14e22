// SPDX-License-Identifier: Apache-2.0

package matching

// find returns the oldest posted receive that takes a message, or nil.
func (q *Queue) find(m *message) *receive {
	for e := q.posted[index(m.tagged)].first; e != nil; e = e.next {
		if e.of.matches(m) {
			return e.of
		}
	}
	return nil
}

// bind makes a message go into a receive. It returns false, and has changed nothing, if
// the sink has no place for it.
func (q *Queue) bind(n *receive, m *message) bool {
	if n.multi {
		m.offset, m.size = n.used, min(m.needs(), n.size-n.used)
		// Unless this is the last message, the receive keeps the place that it
		// has.
		last := n.size-n.used-m.size < n.minFree
		if !last && !q.takePlace() {
			return false
		}
		n.used += m.size
		if last {
			q.unlist(n)
			q.makeRoom() // what it had no place for can go elsewhere
		}
	} else {
		m.offset, m.size = 0, min(m.needs(), n.size)
		q.unlist(n)
	}
	n.filling++
	m.into = n
	m.aim()
	return true
}

// unbind undoes bind: the receive is as it was, unless other messages have gone into a
// multi-receive behind this one. Then a hole is left.
func (q *Queue) unbind(m *message) {
	n := m.into
	m.into = nil
	n.filling--
	switch {
	case n.claim:
		q.conclude(n, Lost)
		return
	case !n.multi:
		q.list(n)
		return
	}
	if n.used == m.offset+m.size {
		n.used = m.offset
	}
	if n.filling == 0 {
		n.used = n.floor
	}
	switch waits := q.waits(n); {
	case waits:
		q.returnPlace()
	case n.size-n.used >= n.minFree:
		q.list(n)
	case n.filling == 0:
		q.conclude(n, Spent)
	default:
		q.returnPlace()
	}
}

// move brings what a held message has into its receive, and completes it if that is all.
func (q *Queue) move(m *message) {
	m.at.leave()
	m.context = nil
	q.memory.empty(m)
	if m.got == m.length {
		q.complete(m)
	}
}

// complete delivers the completion of a message that is in its receive as a whole.
func (q *Queue) complete(m *message) {
	n := m.into
	q.done = m.about(n.context)
	q.done.Note, q.done.Silent = n.note, n.silent
	q.done.Received = m.size
	switch {
	case m.op.is:
		q.done.Received, q.done.Reason = uint64(len(m.op.target)), m.op.misfit
	case m.size < m.length:
		q.done.Reason = Truncated
	}
	n.filling--
	switch end := m.offset + m.size; {
	case n.multi:
		from := end - q.done.Received
		q.done.Buf, q.done.Offset = n.buffers[0][from:end:end], from
		n.floor = max(n.floor, end)
	case m.op.target != nil:
		q.done.Buf, q.done.Offset = m.op.target, m.op.offset
	}
	switch waits := q.waits(n); {
	case !waits && n.filling == 0:
		q.done.Released = n.multi
		q.freeReceive(n)
	case waits && n.filling == 0:
		n.used = n.floor // behind it there may be holes, which messages have left
	}
	q.freeMessage(m)
	q.deliver()
}

// offer gives a receive that is posted the held messages that it takes, the oldest first,
// be all of it here or not: between a peek and a receive that follows the rest of another
// one may come, and the receive has to take the message that the peek has told of.
func (q *Queue) offer(n *receive) {
	q.setBehind(n, false)
	for e := q.held[index(n.Tagged)].first; e != nil && q.waits(n); {
		m := e.of
		e = e.next
		// An older receive that is behind goes first.
		if !n.matches(m) || q.behind > 0 && q.find(m) != n {
			continue
		}
		if !q.bind(n, m) {
			q.setBehind(n, true)
			return
		}
		q.move(m)
	}
}

// catchUp offers the held messages again if a receive had no place for one in the sink.
// All receives are asked, since others may wait behind that one.
func (q *Queue) catchUp() {
	if q.behind > 0 {
		q.offerAll()
	}
}

// offerAll offers the held messages to all receives, in posting order.
func (q *Queue) offerAll() {
	for i := range q.posted {
		for e := q.posted[i].first; e != nil; {
			n := e.of
			e = e.next
			q.offer(n)
		}
	}
}
