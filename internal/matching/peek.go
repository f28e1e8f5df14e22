// SPDX-License-Identifier: Apache-2.0

package matching

// Found is what Peek does with the message that it finds.
type Found uint8

const (
	// Look leaves the message where it is (FI_PEEK).
	Look Found = iota
	// Claim keeps it for a Post with the same context (FI_PEEK | FI_CLAIM).
	Claim
	// Discard drops it (FI_PEEK | FI_DISCARD).
	Discard
)

// Peek looks for the oldest unexpected message that t matches: one that has begun to
// arrive, that no receive takes and that is not claimed. It returns the message's
// meta-data and true, or false if there is none, which completes the operation with
// FI_ENOMSG. No data is returned: Buf is nil, and Length is that of the message, as
// fi_tagged(3) allows.
//
// fi_tagged(3) says of a message that is claimed that it "can only be retrieved using a
// subsequent, paired receive operation with the FI_CLAIM flag set", with the same
// context: Receive.Claim. Messages that are claimed for the same context are retrieved in
// the order in which they were claimed. A claimed message counts as held. If its session
// ends before it is complete, the claim is void and Post returns ErrNotClaimed.
//
// A message that is discarded is "discarded by the provider, as the data is not needed
// by the application": it counts as received for its sender.
func (q *Queue) Peek(t *Match, found Found, context any) (Done, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.held[index(t.Tagged)].first; e != nil; e = e.next {
		m := e.of
		if !t.matches(m) || q.behind > 0 && q.find(m) != nil {
			continue
		}
		d := m.about(context)
		switch found {
		case Claim:
			m.at.leave()
			m.context = context
			q.claimed.pushBack(&m.at)
		case Discard:
			q.drop(m)
		}
		return d, true
	}
	return Done{Context: context, Tagged: t.Tagged}, false
}

// Discard drops the oldest message that is claimed for the context (FI_CLAIM |
// FI_DISCARD), and returns its meta-data and true, or false if there is none.
func (q *Queue) Discard(context any) (Done, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.claimedFor(context)
	if m == nil {
		return Done{Context: context}, false
	}
	d := m.about(context)
	q.drop(m)
	return d, true
}

// claimedFor returns the oldest message that is claimed for the context, or nil.
func (q *Queue) claimedFor(context any) *message {
	for e := q.claimed.first; e != nil; e = e.next {
		if e.of.context == context {
			return e.of
		}
	}
	return nil
}

// about returns a message's meta-data.
func (m *message) about(context any) Done {
	return Done{Context: context, Length: m.length, From: m.from, To: m.to, Tagged: m.tagged, Atomic: m.op.is,
		Tag: m.tag, HasData: m.hasData, Data: m.data}
}
