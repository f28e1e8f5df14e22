// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/xdpfab/xdpfab/atomic"
)

// linearTimeout bounds the search for an order. Histories are kept so short that
// it takes milliseconds; one that takes this long is a failure to look into.
const linearTimeout = 10 * time.Second

// maxPeers is how many peers of one word can have their order checked too.
const maxPeers = 16

// Codes of operations that no client posts.
const (
	wipe = 0xff // a crash clears memory
	end  = 0xfe // the last point in time: what is unknown and has had no effect, never ran
)

// wordState is a word, and which operation of each peer was the last.
type wordState struct {
	value uint64
	ended bool
	last  [maxPeers]uint16 // per peer, seq
}

// wordInput is an operation on a word.
type wordInput struct {
	code           uint8
	value, compare uint64
	unknown        bool
	peer           int    // index into last; -1 when order is not checked
	seq            uint16 // from 1
	after          uint16 // seq of the peer's certain operation before
}

// wordOutput is what an operation found, if that is known.
type wordOutput struct {
	known bool
	value uint64
}

// wordModel is what a word is: a register with sums and swaps, on which the
// operations of each peer take effect in the order posted.
var wordModel = porcupine.Model{
	Init: func() any { return wordState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(wordState), input.(wordInput), output.(wordOutput)
		if in.unknown {
			return in.try(s, state)
		}
		if out.known && out.value != s.value {
			return false, state
		}
		if in.peer >= 0 {
			if in.seq <= s.last[in.peer] {
				return false, state
			}
			s.last[in.peer] = in.seq
		}
		s.value, s.ended = in.apply(s.value), in.code == end
		return true, s
	},
	// The rest of the state follows from which operations were placed, so for a
	// set of placed operations only values tell states apart.
	Equal: func(a, b any) bool { return a.(wordState).value == b.(wordState).value },
}

// try places an operation of which it is not known whether it ran. To keep the
// search short it is placed only where it matters: where it changes the value,
// or after the end. It takes effect after whatever its peer had posted before
// and is certain of; what its peer posted later may have overtaken it, in a new
// session. boxed is s as the checker holds it.
func (in *wordInput) try(s wordState, boxed any) (bool, any) {
	if s.ended {
		return true, boxed
	}
	v := in.apply(s.value)
	if v == s.value || in.peer >= 0 && s.last[in.peer] < in.after {
		return false, boxed
	}
	s.value = v
	return true, s
}

// apply returns what the operation leaves of a value.
func (in *wordInput) apply(v uint64) uint64 {
	switch in.code {
	case uint8(atomic.Sum):
		return v + in.value
	case uint8(atomic.Write):
		return in.value
	case uint8(atomic.Max):
		return max(v, in.value)
	case uint8(atomic.Cswap):
		if v == in.compare {
			return in.value
		}
	case wipe:
		return 0
	}
	return v
}

// checkLinear checks the history of every word that is drawn from.
func (w *world) checkLinear() {
	for _, n := range w.nodes {
		histories := w.histories(n)
		for _, region := range []int{sumRegion, registerRegion} {
			for word := range regionWords[region] {
				h := histories[wordID{n.index, region, word}]
				if len(h) == 0 {
					continue
				}
				h = append(h, n.wipeHistory()...)
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

// histories collects the operations on each word of a node. What may have run
// may do so at any time from its posting on; what did not is left out.
func (w *world) histories(n *node) map[wordID][]porcupine.Operation {
	out := map[wordID][]porcupine.Operation{}
	peers := map[wordID]int{}
	for _, p := range w.peers {
		if p.target != n {
			continue
		}
		views := map[wordID]*wordInput{} // the peer's last operation on each word
		for _, o := range p.ops {
			id := wordID{n.index, o.region, o.first}
			if o.refused || o.region > registerRegion || !o.succeeded() && !o.mayHaveRun() {
				continue
			}
			last := views[id]
			if last == nil {
				last = &wordInput{peer: -1}
				if peers[id] < maxPeers {
					last.peer = peers[id]
					peers[id]++
				}
				views[id] = last
			}
			if call, ok := o.history(last); ok {
				out[id] = append(out[id], call)
			}
		}
	}
	for id, h := range out {
		out[id] = append(h, endOf(h))
	}
	return out
}

// history returns the operation as the checker wants it. last is the peer's
// operation on the same word before, and becomes this one when it is certain.
func (o *op) history(last *wordInput) (porcupine.Operation, bool) {
	in := wordInput{
		code: o.code, value: o.value, compare: o.compare,
		unknown: !o.succeeded(), peer: last.peer, seq: uint16(o.seq + 1), after: last.seq,
	}
	call := porcupine.Operation{Input: in, Call: o.call, Output: wordOutput{}, Return: math.MaxInt64}
	if in.unknown {
		return call, o.code != uint8(atomic.Read) // a read has no effect
	}
	last.seq, call.Return = in.seq, o.ret
	if o.fetches() {
		call.Output = wordOutput{true, o.got[0]}
	}
	return call, true
}

// endOf returns an operation after all that are certain.
func endOf(h []porcupine.Operation) porcupine.Operation {
	t := int64(0)
	for i := range h {
		t = max(t, h[i].Call)
		if h[i].Return != math.MaxInt64 {
			t = max(t, h[i].Return)
		}
	}
	return porcupine.Operation{Input: wordInput{code: end, peer: -1}, Call: t + second, Output: wordOutput{}, Return: t + second}
}

// wipeHistory returns the losses of the node's memory as operations.
func (n *node) wipeHistory() (h []porcupine.Operation) {
	for _, s := range n.wipes {
		h = append(h, porcupine.Operation{
			Input: wordInput{code: wipe, peer: -1}, Call: s.from, Output: wordOutput{}, Return: s.to,
		})
	}
	return h
}
