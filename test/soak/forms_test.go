// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// kind is what an actor posts. All but read add one.
type kind uint8

const (
	addOwn     kind = iota // fetch-add on the actor's own word
	readOwn                // fetch of it
	addShared              // base add on a word that all actors share
	addArray               // base add on the actor's array, several frames
	fetchArray             // the same with results

	// Of a resident session, user space executes these. A plan that is mixed has them.
	addFloat // fetch-add on a double
	addWide  // fetch-add on 128 bits
	addOther // fetch-add in the world's ordinary region
	numKinds
)

// place is where operations go, in an actor's slot or, if shared, in the region.
type place uint8

const (
	ownWord place = iota
	ownArray
	ownFloat
	ownWide
	otherWord
	sharedWord
	numPlaces
)

// field is what lies at a place.
type field struct {
	name  string
	at    int // byte offset
	n     int // elements
	typ   atomic.Datatype
	other bool // in the ordinary region
}

// The words of callers and of client processes lie between the first and the last.
var fields = [numPlaces]field{
	ownWord:    {"word", 0, 1, atomic.Uint64, false},
	ownFloat:   {"double", arrayAt - 8, 1, atomic.Double, false},
	ownWide:    {"wide word", arrayAt - 32, 1, atomic.Uint128, false},
	otherWord:  {"ordinary word", arrayAt - 48, 1, atomic.Uint64, true},
	ownArray:   {"array", arrayAt, arrayLen, atomic.Uint64, false},
	sharedWord: {"shared word", 0, sharedWords, atomic.Uint64, false},
}

// forms are what the operations of each kind are like.
var forms = [numKinds]struct {
	place place
	op    atomic.Op
	fetch bool
}{
	addOwn:     {ownWord, atomic.Sum, true},
	readOwn:    {ownWord, atomic.Read, true},
	addShared:  {sharedWord, atomic.Sum, false},
	addArray:   {ownArray, atomic.Sum, false},
	fetchArray: {ownArray, atomic.Sum, true},
	addFloat:   {ownFloat, atomic.Sum, true},
	addWide:    {ownWide, atomic.Sum, true},
	addOther:   {otherWord, atomic.Sum, true},
}

// ones are operands of an add: read by the engine, and never written.
var ones, floatOne, wideOne = bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, arrayLen),
	binary.LittleEndian.AppendUint64(nil, math.Float64bits(1)),
	append([]byte{1}, make([]byte, 15)...)

// draw draws a kind.
func (a *actor) draw(rnd *rand.Rand) kind {
	if a.mixed && rnd.IntN(5) == 0 {
		return addFloat + kind(rnd.IntN(int(numKinds-addFloat)))
	}
	switch n := rnd.IntN(100); {
	case n < 4:
		return addArray
	case n < 8:
		return fetchArray
	case n < 40:
		return addShared
	case n < 50:
		return readOwn
	}
	return addOwn
}

// message is the operation of p; its result is p's.
func (a *actor) message(p *post) *fi.Msg {
	form := &forms[p.kind]
	f := &fields[form.place]
	m := &fi.Msg{Dest: a.dest, Key: regionKey, Offset: uint64(a.slot + f.at), Datatype: f.typ, Op: form.op, Context: p}
	if f.other {
		m.Key = a.w.otherKey
	}
	if form.place == sharedWord {
		m.Offset = uint64(8 * p.word)
	}
	switch {
	case form.op == atomic.Read:
	case form.place == sharedWord:
		m.Buf = ones[:8]
	case f.typ == atomic.Double:
		m.Buf = floatOne
	case f.typ == atomic.Uint128:
		m.Buf = wideOne
	default:
		m.Buf = ones[:8*f.n]
	}
	if form.fetch {
		p.result = make([]byte, f.n*f.typ.Size())
		m.Result = p.result
	}
	return m
}

// nonsense is a number that no sum can be.
const nonsense = math.MaxUint64

// numbers are the elements in b.
func (f *field) numbers(b []byte) (v []uint64) {
	for ; len(b) > 0; b = b[f.typ.Size():] {
		n := binary.LittleEndian.Uint64(b)
		switch f.typ {
		case atomic.Double:
			x := math.Float64frombits(n)
			if n = uint64(x); !(x >= 0 && x < 1<<53) || float64(n) != x {
				n = nonsense
			}
		case atomic.Uint128:
			if binary.LittleEndian.Uint64(b[8:]) != 0 {
				n = nonsense
			}
		}
		v = append(v, n)
	}
	return v
}

// values are the elements of a result.
func (p *post) values() []uint64 { return fields[forms[p.kind].place].numbers(p.result) }

// numbers are the elements that the server's memory has in a field, of the slot.
func (w *world) numbers(f *field, slot int) []uint64 {
	mem := w.mem
	if f.other {
		mem = w.other
	}
	return f.numbers(mem[slot+f.at:][:f.n*f.typ.Size()])
}
