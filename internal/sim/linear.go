// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/xdpfab/xdpfab/atomic"
)

// linearTimeout bounds the search for an order. Histories are kept so short that
// it takes milliseconds; one that takes this long is a failure to be
// investigated.
const linearTimeout = 10 * time.Second

// maxPairs is for how many pairs of one word the order can be checked too.
const maxPairs = 16

// Codes of operations that no client posts.
const (
	wipe = 0xff // memory is lost
	end  = 0xfe // the last point in time: an unknown operation without an effect by then never ran
)

// wordState is a word, and the last operation of each pair on it.
type wordState struct {
	value value
	ended bool
	last  [maxPairs]uint16 // per pair, seq
}

// wordInput is an operation on a word.
type wordInput struct {
	code           uint8
	datatype       atomic.Datatype
	value, compare value
	unknown        bool
	pair           int    // index into last; -1 when order is not checked
	seq            uint16 // from 1
}

// wordOutput is the value that an operation found, if that is known.
type wordOutput struct {
	known bool
	value value
}

// wordModel is the model of a word: a register with sums, bounds and swaps, on which
// the operations of each pair take effect in the order posted.
var wordModel = porcupine.Model{
	Init: func() any { return wordState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(wordState), input.(wordInput), output.(wordOutput)
		if in.unknown && s.ended {
			return true, state
		}
		if out.known && out.value != s.value {
			return false, state
		}
		if in.pair >= 0 {
			if in.seq <= s.last[in.pair] {
				return false, state
			}
			s.last[in.pair] = in.seq
		}
		was := s.value
		s.value, s.ended = change(in.code, in.datatype, s.value, in.value, in.compare), in.code == end
		// To keep the search short, an operation of which it is not known whether it
		// ran is placed only where that matters: where it changes the value, or after
		// the end. If it ran, it did so in its place: after the operations that its
		// pair had posted before it, and before those posted later.
		return !in.unknown || s.value != was, s
	},
	// The rest of the state follows from which operations were placed, so for a
	// set of placed operations only values tell states apart.
	Equal: func(a, b any) bool { return a.(wordState).value == b.(wordState).value },
}

// checkLinear checks the history of every word that drawWord uses.
func (w *world) checkLinear() {
	for _, n := range w.nodes {
		histories := w.histories(n)
		for _, region := range []int{sumRegion, registerRegion} {
			for word := range regionWords[region] {
				h := histories[wordID{n.index, region, word}]
				if len(h) == 0 {
					continue
				}
				h = append(h, n.regions[region].wipeHistory()...)
				h = append(h, n.regions[region].endOf(word, h))
				switch porcupine.CheckOperationsTimeout(wordModel, h, linearTimeout) {
				case porcupine.Illegal:
					w.fail("the history of word %d of %s of %v is not linearizable", word, regionName(region), n)
					return
				case porcupine.Unknown:
					w.fail("the history of word %d of %s of %v, %d operations, takes too long to check",
						word, regionName(region), n, len(h))
					return
				}
			}
		}
	}
}

// histories collects the operations on each word of a node. An operation that
// may have run may do so at any time from its posting on; one that did not run
// is left out.
func (w *world) histories(n *node) map[wordID][]porcupine.Operation {
	out := map[wordID][]porcupine.Operation{}
	pairs := map[wordID]int{}
	for _, p := range w.pairs {
		if p.target != n {
			continue
		}
		places := map[wordID]int{} // of the pair in each word's state
		for _, o := range p.ops {
			id := wordID{n.index, o.region, o.first}
			if o.refused || o.region > registerRegion || !o.succeeded() && !o.mayHaveRun() {
				continue
			}
			place, known := places[id]
			if !known {
				if place = -1; pairs[id] < maxPairs && !p.c.anyOrder {
					place = pairs[id]
					pairs[id]++
				}
				places[id] = place
			}
			if call, ok := o.history(place); ok {
				out[id] = append(out[id], call)
			}
		}
	}
	return out
}

// history returns the operation in the form of the checker.
func (o *op) history(pair int) (porcupine.Operation, bool) {
	in := wordInput{
		code: o.code, datatype: o.datatype, unknown: !o.succeeded(), pair: pair, seq: uint16(o.seq + 1),
		value:   decode(o.datatype, encode(o.datatype, o.value)),
		compare: decode(o.datatype, encode(o.datatype, o.compare)),
	}
	call := porcupine.Operation{Input: in, Call: o.call, Output: wordOutput{}, Return: math.MaxInt64}
	if in.unknown {
		return call, o.code != uint8(atomic.Read) // a read has no effect
	}
	call.Return = o.ret
	if o.fetches() {
		call.Output = wordOutput{true, o.got[0]}
	}
	return call, true
}

// endOf returns an operation after all that are certain: it finds the word's last
// value.
func (r *region) endOf(word int, h []porcupine.Operation) porcupine.Operation {
	t := int64(0)
	for i := range h {
		t = max(t, h[i].Call)
		if h[i].Return != math.MaxInt64 {
			t = max(t, h[i].Return)
		}
	}
	return porcupine.Operation{Input: wordInput{code: end, pair: -1}, Call: t + second,
		Output: wordOutput{true, r.word(word)}, Return: t + second}
}

// wipeHistory returns the losses of the region's memory as operations.
func (r *region) wipeHistory() (h []porcupine.Operation) {
	for _, s := range r.wipes {
		h = append(h, porcupine.Operation{
			Input: wordInput{code: wipe, pair: -1}, Call: s.from, Output: wordOutput{}, Return: s.to,
		})
	}
	return h
}
