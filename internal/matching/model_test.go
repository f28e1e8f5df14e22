// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// model is what a queue should do, in slices, without a thought of speed. It is copied to
// try a message, so nothing in it is a pointer.
type model struct {
	cfg    Config
	free   int // places of the sink
	booked int // receives that are reserved
	ids    int
	rxs    []modelReceive // in posting order
	msgs   []modelMessage // in order of arrival
	done   []Done         // what was delivered and not yet compared
	closed bool
}

type modelReceive struct {
	Receive
	id, used, floor, filling int
	waits                    bool
}

type modelMessage struct {
	wire.Message
	id, inflow   int
	from         wire.Addr
	data         []byte // all of it
	got          int
	state        state
	context      any
	claimed      int // when it was claimed
	into         int // id of its receive
	offset, size int
}

// state is where a message is.
type state int

const (
	stateHeld state = iota
	stateClaimed
	stateInto
	stateDropped
)

func (m *model) clone() model {
	c := *m
	c.rxs, c.msgs, c.done = slices.Clone(m.rxs), slices.Clone(m.msgs), slices.Clone(m.done)
	return c
}

func (m *model) id() int { m.ids++; return m.ids }

// receive returns the receive with the id.
func (m *model) receive(id int) *modelReceive {
	return &m.rxs[slices.IndexFunc(m.rxs, func(r modelReceive) bool { return r.id == id })]
}

func (m *model) forget(id int) {
	m.rxs = slices.DeleteFunc(m.rxs, func(r modelReceive) bool { return r.id == id })
}

// current returns the message in progress of an inflow, or nil.
func (m *model) current(inflow int) *modelMessage {
	i := slices.IndexFunc(m.msgs, func(x modelMessage) bool { return x.inflow == inflow && x.got < len(x.data) })
	if i < 0 {
		return nil
	}
	return &m.msgs[i]
}

func (r *modelReceive) takes(x *modelMessage) bool {
	return r.waits && r.Tagged == x.Tagged && (!r.Tagged || x.Tag&^r.Ignore == r.Tag&^r.Ignore) && (r.AnySource || r.From == x.from)
}

func (r *modelReceive) length() (n int) {
	for _, b := range r.Buffers {
		n += len(b)
	}
	return n
}

// divides reports whether so many bytes at an offset lie in several buffers.
func (r *modelReceive) divides(offset, length int) bool {
	for _, b := range r.Buffers {
		if offset < len(b) {
			return length > len(b)-offset
		}
		offset -= len(b)
	}
	return true
}

// needs returns how many bytes of a buffer a message needs.
func (x *modelMessage) needs() uint64 { return x.Atomic.Offset + uint64(len(x.data)) }

// first returns the oldest receive that takes a message, or nil.
func (m *model) first(x *modelMessage) *modelReceive {
	for i := range m.rxs {
		if m.rxs[i].takes(x) {
			return &m.rxs[i]
		}
	}
	return nil
}

// bind lets a message go into a receive, if there is a place for its completion.
func (m *model) bind(r *modelReceive, x *modelMessage) bool {
	left := r.length() - r.used
	size := int(min(x.needs(), uint64(left)))
	stays := r.Multi && left-size >= max(r.MinFree, 1)
	if stays && m.free == 0 {
		return false
	}
	if stays {
		m.free--
	}
	x.state, x.into, x.offset, x.size = stateInto, r.id, r.used, size
	r.waits = stays
	r.filling++
	if r.Multi {
		r.used += size
	}
	return true
}

// settle gives a receive what is held and is for it, oldest first, until one has no
// place.
func (m *model) settle(id int) {
	for i := 0; i < len(m.msgs); i++ {
		x := &m.msgs[i]
		if x.state != stateHeld {
			continue
		}
		if r := m.first(x); r == nil || r.id != id {
			continue
		} else if !m.bind(r, x) {
			return
		}
		if x.got == len(x.data) {
			m.complete(x.id)
			i--
		}
	}
}

func (m *model) settleAll() {
	for _, tagged := range []bool{false, true} {
		for _, r := range slices.Clone(m.rxs) {
			if r.Tagged == tagged {
				m.settle(r.id)
			}
		}
	}
}

// remove takes a message out and returns it.
func (m *model) remove(id int) modelMessage {
	i := slices.IndexFunc(m.msgs, func(x modelMessage) bool { return x.id == id })
	x := m.msgs[i]
	m.msgs = slices.Delete(m.msgs, i, i+1)
	return x
}

// complete is called when all of a message is in its receive.
func (m *model) complete(id int) {
	x := m.remove(id)
	r := m.receive(x.into)
	d := x.about(r.Context)
	skip := int(min(x.Atomic.Offset, uint64(x.size)))
	d.Received = uint64(x.size - skip)
	if uint64(x.size) < x.needs() {
		d.Reason = Truncated
	} else if x.Atomic.Form != 0 && r.divides(x.offset+skip, len(x.data)) {
		d.Reason = Misplaced
	}
	if d.Atomic = x.Atomic.Form != 0; d.Atomic && d.Reason != Received {
		skip, d.Received = x.size, 0
	}
	at := x.offset + skip
	if all := bytes.Join(r.Buffers, nil); !bytes.Equal(all[at:at+int(d.Received)], x.data[:d.Received]) {
		panic("the buffer has other bytes than the message")
	}
	r.filling--
	r.floor = max(r.floor, x.offset+x.size)
	if r.Multi || d.Atomic && d.Received > 0 {
		d.Buf, d.Offset = x.data[:d.Received], uint64(at)
	}
	if r.filling == 0 {
		r.used = r.floor
		if !r.waits {
			d.Released = r.Multi
			m.forget(r.id)
		}
	}
	m.done = append(m.done, d)
}

func (x *modelMessage) about(context any) Done {
	return Done{Context: context, Length: uint64(len(x.data)), Tagged: x.Tagged, Tag: x.Tag, Atomic: x.Atomic.Form != 0, HasData: x.HasData, Data: x.Data, From: x.from}
}

// conclude completes a receive without a message.
func (m *model) conclude(r *modelReceive, why Reason) {
	m.done = append(m.done, Done{Context: r.Context, Reason: why, Tagged: r.Tagged, Released: r.Multi})
	m.forget(r.id)
}

// held returns how many messages are held, and how many chunks they have.
func (m *model) held() (n, claimed, chunks int) {
	for _, x := range m.msgs {
		if x.state > stateClaimed {
			continue
		}
		n++
		if x.state == stateClaimed {
			claimed++
		}
		if len(x.data) > InlineSize {
			chunks += (len(x.data) + ChunkSize - 1) / ChunkSize
		}
	}
	return n, claimed, chunks
}

func (m *model) post(rx Receive) error {
	var claimed *modelMessage
	for i := range m.msgs {
		if x := &m.msgs[i]; rx.Claim && x.state == stateClaimed && x.context == rx.Context && (claimed == nil || x.claimed < claimed.claimed) {
			claimed = x
		}
	}
	switch {
	case m.closed:
		return ErrClosed
	case rx.Claim && claimed == nil:
		return ErrNotClaimed
	case rx.Reserved:
		m.booked--
	case len(m.rxs)+m.booked == m.cfg.Receives || m.free == 0:
		return ErrFull
	default:
		m.free--
	}
	r := modelReceive{Receive: rx, id: m.id(), waits: !rx.Claim}
	m.rxs = append(m.rxs, r)
	if rx.Claim {
		m.bind(m.receive(r.id), claimed)
		if claimed.got == len(claimed.data) {
			m.complete(claimed.id)
		}
	}
	m.settle(r.id)
	return nil
}

// reserve reserves a receive.
func (m *model) reserve() error {
	if len(m.rxs)+m.booked == m.cfg.Receives || m.free == 0 {
		return ErrFull
	}
	m.free--
	m.booked++
	return nil
}

// abandon ends a reserved receive that is not posted.
func (m *model) abandon(rx *Receive) {
	m.booked--
	m.done = append(m.done, Done{Context: rx.Context, Reason: Cancelled, Tagged: rx.Tagged, Released: rx.Multi})
}

// admit takes a message that begins, and returns false if there is no room. The id of the
// message is the last one that was given.
func (m *model) admit(inflow, from int, s sent) bool {
	if m.closed {
		return false
	}
	x := modelMessage{Message: s.Message, id: m.id(), inflow: inflow, from: peer(from), data: s.data}
	x.from.Endpoint = s.Source
	if r := m.first(&x); r != nil {
		for i := range m.msgs { // may not overtake
			if y := &m.msgs[i]; y.state == stateHeld && r.takes(y) {
				return false
			}
		}
		if !m.bind(r, &x) {
			return false
		}
		m.msgs = append(m.msgs, x)
		return true
	}
	m.msgs = append(m.msgs, x)
	n, _, chunks := m.held()
	if s.Match || n > m.cfg.Unexpected || chunks > chunksFor(m.cfg.Memory) {
		m.remove(x.id)
		return false
	}
	return true
}

// arrive is called when so many bytes of a message have come.
func (m *model) arrive(id, n int) {
	i := slices.IndexFunc(m.msgs, func(x modelMessage) bool { return x.id == id })
	x := &m.msgs[i]
	if x.got += n; x.got < len(x.data) {
		return
	}
	switch x.state {
	case stateInto:
		m.complete(id)
	case stateDropped:
		m.remove(id)
	}
}

// drop drops the message in progress of an inflow.
func (m *model) drop(inflow int) {
	c := m.current(inflow)
	if c == nil {
		return
	}
	x := m.remove(c.id)
	if x.state == stateInto {
		r := m.receive(x.into)
		r.filling--
		waited := r.waits
		if r.used == x.offset+x.size {
			r.used = x.offset
		}
		if r.filling == 0 {
			r.used = r.floor
		}
		r.waits = r.waits || !r.Claim && r.length()-r.used >= max(r.MinFree, 1) || !r.Multi && !r.Claim
		switch {
		case waited || !r.waits && r.filling > 0:
			m.free++
		case r.Claim:
			m.conclude(r, Lost)
		case !r.waits:
			m.conclude(r, Spent)
		}
		if r := x.into; slices.ContainsFunc(m.rxs, func(y modelReceive) bool { return y.id == r }) {
			m.settle(r)
		}
	}
	m.settleAll()
}

// peek returns the oldest held message that t takes.
func (m *model) peek(t *Match, found Found, context any) (Done, bool) {
	r := modelReceive{Receive: Receive{Match: *t}, waits: true}
	for i := range m.msgs {
		if x := &m.msgs[i]; x.state == stateHeld && r.takes(x) && m.first(x) == nil {
			return m.found(x, found, context), true
		}
	}
	return Done{Context: context, Tagged: t.Tagged}, false
}

func (m *model) found(x *modelMessage, found Found, context any) Done {
	d := x.about(context)
	switch {
	case found == Claim:
		x.state, x.context, x.claimed = stateClaimed, context, m.id()
	case found == Discard && x.got == len(x.data):
		m.remove(x.id)
	case found == Discard:
		x.state = stateDropped
	}
	return d
}

// discard drops the message that was claimed first for the context.
func (m *model) discard(context any) (Done, bool) {
	var first *modelMessage
	for i := range m.msgs {
		if x := &m.msgs[i]; x.state == stateClaimed && x.context == context && (first == nil || x.claimed < first.claimed) {
			first = x
		}
	}
	if first == nil {
		return Done{Context: context}, false
	}
	return m.found(first, Discard, context), true
}

func (m *model) cancel(context any) bool {
	for i := range m.rxs {
		if r := &m.rxs[i]; r.waits && r.filling == 0 && r.Context == context {
			m.conclude(r, Cancelled)
			m.settleAll()
			return true
		}
	}
	return false
}

// close cancels all receives; their order is of no matter.
func (m *model) close() {
	m.closed = true
	for i := range m.msgs {
		if x := &m.msgs[i]; x.state == stateInto {
			if r := m.receive(x.into); r.waits || r.filling > 1 {
				m.free++
				r.filling--
			}
		}
		m.msgs[i].state = stateDropped
	}
	m.msgs = slices.DeleteFunc(m.msgs, func(x modelMessage) bool { return x.got == len(x.data) })
	for len(m.rxs) > 0 {
		m.conclude(&m.rxs[0], Cancelled)
	}
}
