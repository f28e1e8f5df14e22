// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// mailRegion stands for no region: letters are for receives, not for memory.
const mailRegion = numRegions

// letter is what an operation has if it is a message. Its number is in its data, in its
// tag or in its bytes, at least in one of them.
type letter struct {
	o       *op
	id      uint32 // its place in world.letters, from 1
	length  int
	tag     uint64 // the number, and a class of 2 bits
	data    uint64
	tagged  bool
	hasData bool
	match   bool // it must not be kept for a receive that is posted later
	welcome bool // its endpoint receives messages, as far as the client knows

	came    int      // deliveries, at most one
	at      int64    // when it was delivered
	into    *receive // nil if it was discarded
	claimed bool
	seen    []sight // what memory showed then
	combination
}

// sight is the value of a word to which an earlier operation of the pair adds.
type sight struct {
	o     *op
	word  int
	value uint64
}

// longest is the most bytes of a letter.
const longest = 40_000

// leastIdentity is how many bytes of a letter tell its number.
const leastIdentity = 4

// drawLetter makes o a message.
func (o *op) drawLetter(w *world) {
	d := w.dice
	l := &letter{o: o, id: uint32(len(w.letters) + 1), tagged: d.chance(0.5), hasData: d.chance(0.4),
		match: d.chance(0.15)}
	switch d.IntN(10) {
	case 0:
		l.length = 0
	case 1, 2, 3:
		l.length = d.IntN(100)
	case 4:
		l.length = d.IntN(longest)
	default:
		l.length = d.IntN(3000)
	}
	o.verb = wire.VerbSend
	if l.tagged {
		o.verb, l.tag = wire.VerbTagged, uint64(l.id)<<32|uint64(d.IntN(4))
	}
	if l.hasData = l.hasData || !l.tagged && l.length < leastIdentity; l.hasData {
		l.data = uint64(l.id) << 8
	}
	p := o.peer
	l.welcome = p.target.receives(p.endpoint) && p.c.n.features()&p.target.features()&wire.FeatureMessages != 0
	l.drawCombination(w)
	o.letter, o.region, o.first, o.count = l, mailRegion, 0, 1
	w.letters = append(w.letters, l)
}

// contents returns the bytes of the letter.
func (l *letter) contents() []byte {
	b := make([]byte, l.length)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + int(l.id)*31)
	}
	if l.length >= leastIdentity {
		binary.LittleEndian.PutUint32(b, l.id)
	}
	return b
}

func (l *letter) String() string {
	s := fmt.Sprintf("op %d of %v: letter %d of %d bytes to endpoint %d of %v", l.o.seq, l.o.peer, l.id, l.length,
		l.o.peer.endpoint, l.o.peer.target)
	if l.tagged {
		s += fmt.Sprintf(", tag %#x", l.tag)
	}
	if l.hasData {
		s += ", data"
	}
	if l.match {
		s += ", for a posted receive"
	}
	if l.form != 0 {
		s += fmt.Sprintf(", %v at offset %d", l.form, l.shift)
	}
	return s
}

// fill writes the letter into an entry of the submission ring.
func (l *letter) fill(e *engine.Submission) {
	o := l.o
	e.Verb, e.Key, e.Count, e.Opcode, e.Datatype, e.Flags = o.verb, l.tag, uint32(l.length), 0, wire.Byte, 0
	if l.form != 0 {
		l.fillCombination(e)
	}
	if l.hasData {
		e.Flags, e.Data = engine.FlagData, l.data
	}
	if l.match {
		e.Flags |= engine.FlagMatch
	}
	b := l.contents()
	var copied bool
	if l.length > 2 && l.id%3 == 0 {
		copied = e.SetPieces(&engine.Pieces{Buf: [][]byte{b[:l.length/3], b[l.length/3:]}}, nil, nil)
	} else {
		copied = e.SetOperands(b, nil)
	}
	if copied {
		scribble(b) // the engine has given it back to the caller
	} else {
		o.operand = b
	}
}

// from returns the address that the target knows the letter's sender by.
func (o *op) from() wire.Addr {
	n := o.peer.c.n
	from := wire.Addr{MAC: n.link.Local, Endpoint: uint16(o.peer.c.id)}
	if n.w.plan.encap != wire.Ethernet {
		from.MAC, from.IP = wire.MAC{}, n.link.LocalIP
	}
	return from
}

// renounced is an operation by a name that was closed before the engine had seen it.
type renounced struct{ c *client }

// renounce posts an operation by a name, closes the name, and opens so many others that
// one of them gets its place: the operation must not reach that one.
func (c *client) renounce() {
	w := c.n.w
	e := c.ring.Claim()
	if e == nil {
		return
	}
	former, last := c.wants[0], c.wants[len(c.wants)-1]
	name := c.open(former)
	e.Peer, e.Context, e.Key, e.Offset, e.Count = name.ID(), renounced{c}, last.target.regions[sumRegion].key(), 0, 1
	e.Verb, e.Opcode, e.Datatype, e.Flags = wire.VerbAtomic, uint8(atomic.Sum), uint8(w.typeOf(sumRegion, 0)), 0
	e.SetOperands(encode(w.typeOf(sumRegion, 0), 1), nil)
	e.Publish()
	c.outstanding++
	w.pending++
	w.count(renouncements)
	if w.dice.chance(0.5) {
		c.eng().Collect(c.ring)
	}
	name.Close()
	// A place is given out again when more than half of them are free.
	var others []*engine.Peer
	for range len(c.peers) + 2 {
		others = append(others, c.open(former))
	}
	for _, p := range others {
		p.Close()
	}
	successor := c.open(last)
	w.trace.event("%v: peer %#x is closed, and %#x opened", c.n, name.ID(), successor.ID())
	life := c.n.life
	w.at(w.now+millisecond, func() {
		if c.n.life == life {
			successor.Close()
		}
	})
	c.n.wake(w.now)
}

// open gives a destination another name.
func (c *client) open(d destination) *engine.Peer {
	p, err := c.origin.NewPeer(c.n.linkTo(d.target), 0, d.endpoint)
	if err != nil {
		panic(err) // its link is one of the plan's kind, and there are few peers
	}
	return p
}

// Complete implements engine.Completer.
func (r renounced) Complete(_ *engine.Submission, c *engine.Completion, _ *engine.Later) {
	w := r.c.n.w
	r.c.outstanding--
	w.pending--
	if c.Outcome != engine.NotExecuted || c.Reason != session.ClosedHere {
		w.fail("%v: by a closed peer: outcome %d, status %v, reason %v, want not executed, %v",
			r.c.n, c.Outcome, c.Status, c.Reason, session.ClosedHere)
	}
}
