// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// postWord posts an operation on one word, if the caller gets the turn and there is room:
// that is the ordinary path. Otherwise it does nothing and returns false, and submit
// follows.
//
// The steps are those of submit, in few calls, and an operation that is like the one
// before it but for operand, offset, result and context is not described again. That
// takes 5 to 7 ns off each operation of BenchmarkPost, of 56.
func (ep *endpoint) postWord(verb wire.Verb, m *Msg, flags OpFlags, cookie uint64) (posted bool) {
	if !m.short(verb, flags) || !ep.stepper.TryHold() {
		return false
	}
	if l := &ep.latest; (l.is(ep, verb, m, cookie) || l.describe(ep, verb, m, cookie)) && ep.enter(cookie) {
		f := engine.Follower{Context: m.Context, Offset: m.Offset}
		if verb != wire.VerbAtomic {
			f.Result = (*[8]byte)(m.Result)
		}
		l.word.Operand = 0
		if m.Op != atomic.Read {
			l.word.Operand = binary.LittleEndian.Uint64(m.Buf)
		}
		posted = ep.stepper.Eng.Extend(ep.ring, &l.word, f) || ep.begin(verb, m, cookie)
		if !posted {
			ep.leave(cookie)
		}
	}
	ep.stepper.Release()
	return posted
}

// begin gives the engine the operation that is described, which extends no run. It
// returns false if the engine has no room.
func (ep *endpoint) begin(verb wire.Verb, m *Msg, cookie uint64) bool {
	w, e := &ep.latest.word, ep.stepper.Eng
	s := e.Begin(ep.ring)
	if s == nil {
		return false
	}
	m.describe(s, verb, w.Peer, cookie, 1)
	binary.LittleEndian.PutUint64(s.Inline[:], w.Operand)
	e.Submit(ep.ring)
	return true
}

// latest is the latest operation that postWord has described. It belongs to the goroutine
// that has the turn.
type latest struct {
	word  engine.Word
	peers *[]known // where its peer is from: another list may have another peer for the address
}

// is reports whether the description holds for an operation.
func (l *latest) is(ep *endpoint, verb wire.Verb, m *Msg, cookie uint64) bool {
	return l.word.Cookie == cookie|uint64(m.Dest) && l.word.Is(verb, uint8(m.Op), uint8(m.Datatype)) &&
		l.word.On(m.Key, m.Incarnation) && l.peers == ep.peers.Load()
}

// describe describes an operation that is short. It returns false if that is on no word,
// or the engine has no peer for the address as yet. A receive context's address is not in
// the list of peers, so that its description holds for one operation.
func (l *latest) describe(ep *endpoint, verb wire.Verb, m *Msg, cookie uint64) bool {
	if !m.onWord(verb) {
		return false
	}
	w := &l.word
	l.peers = ep.peers.Load()
	if k := ep.knownPeer(*l.peers, m.Dest); k != nil {
		w.Peer = k.id
	} else if k, is := ep.contextPeer(m.Dest); is {
		l.peers, w.Peer = nil, k.id
	} else {
		l.peers = nil
		return false
	}
	w.Of(verb, uint8(m.Op), uint8(m.Datatype))
	w.In(m.Key, m.Incarnation)
	w.Cookie = cookie | uint64(m.Dest)
	return true
}

// word reports whether the operation is on one element of 8 bytes, without a comparand, a
// fence or anything else that is unusual. Then it is also as elements would have it.
func (m *Msg) word(verb wire.Verb, flags OpFlags) bool { return m.short(verb, flags) && m.onWord(verb) }

// short reports all of word but for the datatype, and whether it has the operation.
func (m *Msg) short(verb wire.Verb, flags OpFlags) bool {
	result := 8
	if verb == wire.VerbAtomic {
		result = 0
	}
	return verb.Atomic() && uint(m.Count) <= 1 && flags&^(knownOpFlags&^generalFlags) == 0 && m.RMA == nil &&
		m.Pieces == nil && m.Trigger == nil && len(m.Compare) == 0 && len(m.Result) == result &&
		(len(m.Buf) == 8 || m.Op == atomic.Read)
}

// onWord reports whether the operation, which is short, is defined on a datatype of 8
// bytes.
func (m *Msg) onWord(verb wire.Verb) bool {
	return m.Op < atomic.NumOps && words[verb][m.Op]>>m.Datatype&1 != 0
}

// words tells, by verb and operation, the datatypes of 8 bytes on which the operation is
// defined in the base and the fetch form, a bit for each.
var words = func() (t [wire.NumAtomicVerbs][atomic.NumOps]uint32) {
	for verb := range t {
		for op := range atomic.Op(atomic.NumOps) {
			for dt := range atomic.Datatype(atomic.NumDatatypes) {
				if verb := wire.Verb(verb); verb.Atomic() && verb != wire.VerbCompare &&
					dt.Size() == 8 && atomic.Valid(memory.FormOf(verb), op, dt) {
					t[verb][op] |= 1 << dt
				}
			}
		}
	}
	return t
}()
