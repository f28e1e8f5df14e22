// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"errors"
	"fmt"
)

// Usage is what a queue has and uses.
type Usage struct {
	Posted  int // receives that wait for messages
	Filling int // receives that do not wait, and into which a message is going
	Held    int // unexpected messages, claimed ones among them
	Claimed int // messages that are claimed
	Memory  int // bytes of the budget that are taken
	Leased  Room
	Made    int // bytes of memory for unexpected messages that were allocated
	Places  int // places taken in the sink
	Inflows int // sessions
}

// Usage returns what the queue has and uses.
func (q *Queue) Usage() Usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	posted := q.posted[0].n + q.posted[1].n
	return Usage{
		Posted: posted, Filling: q.cfg.Receives - q.receives.n - posted,
		Held: q.holding(), Claimed: q.claimed.n,
		Memory: (chunksFor(q.cfg.Memory)-q.memory.free)*ChunkSize - int(q.leased.Bytes), Leased: q.leased,
		Made:   q.memory.made * ChunkSize,
		Places: q.places, Inflows: q.inflows.n,
	}
}

// Check reports contradictions in the state of the queue, for tests: nil unless there is
// a bug. It counts everything again.
func (q *Queue) Check() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	filling, err := q.checkCurrent()
	return errors.Join(err, q.checkReceives(filling), q.checkHeld(), q.checkMemory(), q.checkPairs())
}

// checkCurrent looks at the messages in progress, and counts those that go into each
// receive.
func (q *Queue) checkCurrent() (filling map[*receive]int, err error) {
	filling = map[*receive]int{}
	for e := q.inflows.first; e != nil; e = e.next {
		m := e.of.current
		if m == nil {
			continue
		}
		if m.got >= m.length {
			return filling, fmt.Errorf("matching: a message of %d bytes is in progress and has %d", m.length, m.got)
		}
		if held := m.at.in != nil; held && (m.into != nil || m.discarded) || !held && m.into == nil && !m.discarded {
			return filling,
				fmt.Errorf(
					"matching: a message in progress: held %v, goes into a receive %v, discarded %v, want one of them",
					held, m.into != nil, m.discarded)
		}
		if m.into != nil {
			filling[m.into]++
		}
	}
	return filling, nil
}

// checkReceives looks at the posted receives and counts places in the sink.
func (q *Queue) checkReceives(filling map[*receive]int) error {
	places, behind, busy, posted := 0, 0, 0, 0
	for n, count := range filling {
		if n.filling != count || !n.multi && (count != 1 || q.waits(n)) {
			return fmt.Errorf("matching: %d messages go into a receive, which counts %d; multi %v, waits %v", count,
				n.filling, n.multi, q.waits(n))
		}
		places += count
		if !q.waits(n) {
			busy++
		}
	}
	for i := range q.posted {
		last := uint64(0)
		for e := q.posted[i].first; e != nil; e = e.next {
			n := e.of
			switch {
			case n.sequence <= last || n.sequence > q.sequence:
				return fmt.Errorf("matching: receive %d of %d is posted behind receive %d", n.sequence,
					q.sequence, last)
			case index(n.Tagged) != i || n.filling != filling[n] || n.claim:
				return fmt.Errorf("matching: receive %d in list %d: tagged %v, claim %v, %d messages go in, want %d",
					n.sequence, i, n.Tagged, n.claim, n.filling, filling[n])
			case n.multi && (n.size-n.used < n.minFree || n.filling == 0 && n.used != n.floor):
				return fmt.Errorf(
					"matching: multi-receive %d is posted, has %d of %d bytes used, %d complete, wants %d free",
					n.sequence, n.used, n.size, n.floor, n.minFree)
			}
			last = n.sequence
			places++
			posted++
			if n.behind {
				behind++
			}
		}
	}
	if places += q.reserved; q.reserved < 0 || q.reserved > q.receives.n {
		return fmt.Errorf("matching: %d receives are reserved, of %d that are not in use", q.reserved, q.receives.n)
	}
	if places != q.places || behind != q.behind || busy+posted+q.receives.n != q.cfg.Receives {
		return fmt.Errorf("matching: %d places, %d receives behind, %d busy, %d posted, %d unused; counted %d "+
			"places, %d behind, want %d receives",
			places, behind, busy, posted, q.receives.n, q.places, q.behind, q.cfg.Receives)
	}
	return nil
}

// each calls f for every message that is held.
func (q *Queue) each(f func(*message)) {
	for _, l := range []*list[message]{&q.held[0], &q.held[1], &q.claimed} {
		for e := l.first; e != nil; e = e.next {
			f(e.of)
		}
	}
}

// checkHeld looks at the messages that are held.
func (q *Queue) checkHeld() (err error) {
	count := 0
	q.each(func(m *message) {
		count++
		if m.into != nil || m.discarded || m.at.in != &q.claimed && m.at.in != &q.held[index(m.tagged)] {
			err = fmt.Errorf("matching: a message is held, but goes into a receive (%v), was discarded (%v) or is in "+
				"the wrong list", m.into != nil, m.discarded)
		}
	})
	if err == nil && (count != q.holding() || count+int(q.leased.Messages) > q.cfg.Unexpected ||
		q.closed && count > 0) {
		err = fmt.Errorf("matching: %d messages are held, counted %d, at most %d; closed %v", count, q.holding(),
			q.cfg.Unexpected, q.closed)
	}
	return err
}

// checkMemory counts the chunks.
func (q *Queue) checkMemory() (err error) {
	reserved, made := 0, 0
	q.each(func(m *message) {
		used := 0
		for c := m.chunks; c != nil; c = c.next {
			used++
		}
		if used > m.reserved || m.reserved > 0 && used != chunksFor(int(m.got)) {
			err = fmt.Errorf("matching: a message has %d bytes in %d chunks and %d reserved", m.got, used, m.reserved)
		}
		reserved, made = reserved+m.reserved, made+used
	})
	for c := q.memory.spare; c != nil; c = c.next {
		made++
	}
	leased := int(q.leased.Bytes / ChunkSize)
	if err == nil && (reserved+leased+q.memory.free != chunksFor(q.cfg.Memory) || made != q.memory.made ||
		made > chunksFor(q.cfg.Memory)) {
		err = fmt.Errorf("matching: %d chunks reserved, %d leased, %d free, of %d; %d made, counted %d",
			reserved, leased, q.memory.free, chunksFor(q.cfg.Memory), made, q.memory.made)
	}
	return err
}

// checkPairs looks for a message that is held though a posted receive takes it.
func (q *Queue) checkPairs() (err error) {
	q.each(func(m *message) {
		if m.at.in == &q.claimed {
			return
		}
		if n := q.find(m); n != nil && !n.behind {
			err = fmt.Errorf("matching: a message with tag %#x is held, and receive %d, which matches it, is posted",
				m.tag, n.sequence)
		}
	})
	return err
}
