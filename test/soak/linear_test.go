// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// step is an operation of a history of one word.
type step struct {
	op       atomic.Op // Read, Write, Sum or Cswap
	arg, cmp uint64
}

// outcome is the value fetched, if it is known.
type outcome struct {
	old   uint64
	known bool
}

// word is the model. An operation of unknown outcome gets a return at the end of
// time: it may run anywhere after its call, and running last is the same as never
// running.
var wordModel = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, in, out any) (bool, any) {
		v, s, o := state.(uint64), in.(step), out.(outcome)
		if o.known && o.old != v {
			return false, v
		}
		switch s.op {
		case atomic.Write:
			v = s.arg
		case atomic.Sum:
			v += s.arg
		case atomic.Cswap:
			if v == s.cmp {
				v = s.arg
			}
		}
		return true, v
	},
	Equal: func(a, b any) bool { return a == b },
}

// soloist runs one operation at a time.
type soloist struct {
	*actor
	ops []porcupine.Operation
}

// play runs n operations on the first shared word.
func (s *soloist) play(n, client int, start time.Time) {
	var result, arg, cmp [8]byte
	for range n {
		st := step{op: [...]atomic.Op{atomic.Read, atomic.Write, atomic.Sum, atomic.Cswap}[s.rnd.IntN(4)], arg: s.rnd.Uint64N(5), cmp: s.rnd.Uint64N(5)}
		arg[0], cmp[0] = byte(st.arg), byte(st.cmp)
		p := &post{kind: addShared, result: result[:]}
		call := time.Since(start)
		var err error
		switch st.op {
		case atomic.Cswap:
			err = s.ep.CompareAtomic(&fi.Msg{Buf: arg[:], Compare: cmp[:], Result: result[:], Dest: s.dest, Key: regionKey, Datatype: atomic.Uint64, Op: st.op, Context: p}, 0)
		case atomic.Read:
			err = s.ep.FetchAtomic(&fi.Msg{Result: result[:], Dest: s.dest, Key: regionKey, Datatype: atomic.Uint64, Op: st.op, Context: p}, 0)
		default:
			err = s.ep.FetchAtomic(&fi.Msg{Buf: arg[:], Result: result[:], Dest: s.dest, Key: regionKey, Datatype: atomic.Uint64, Op: st.op, Context: p}, 0)
		}
		if err != nil {
			s.w.t.Errorf("posting: %v", err)
			return
		}
		s.open++
		if s.drain(); s.open > 0 {
			return
		}
		o := porcupine.Operation{ClientId: client, Input: st, Call: int64(call), Return: int64(time.Since(start))}
		switch {
		case p.fate == ok:
			o.Output = outcome{p.values()[0], true}
		case errors.Is(p.err, xdpfab.ErrNotExecuted):
			continue
		default:
			o.Output, o.Return = outcome{}, math.MaxInt64
		}
		s.ops = append(s.ops, o)
	}
}

// linear checks one short history of several clients of one word, while disturb
// runs.
func linear(t *testing.T, w *world, p plan, disturb func()) {
	t.Helper()
	c := w.hire(p)
	start := time.Now()
	var wg sync.WaitGroup
	solo := make([]*soloist, len(c.actors))
	for i, a := range c.actors {
		solo[i] = &soloist{actor: a}
		wg.Go(func() { solo[i].play(p.limit, i, start) })
	}
	disturb()
	wg.Wait()
	var history []porcupine.Operation
	for _, s := range solo {
		history = append(history, s.ops...)
	}
	// The final value of the memory counts as one more read.
	end := int64(time.Since(start))
	history = append(history, porcupine.Operation{ClientId: len(solo), Input: step{op: atomic.Read},
		Call: end, Output: outcome{w.word(0), true}, Return: end + 1})
	switch porcupine.CheckOperationsTimeout(wordModel, history, 20*time.Second) {
	case porcupine.Illegal:
		t.Errorf("the history of %d operations is not linearizable: %v", len(history), history)
	case porcupine.Ok:
		survived.add("linearizable histories", 1)
		survived.add("operations", len(history)-1)
	}
}

// Several clients of one word, while the wire does everything and is cut at times
// for longer than the give-up time.
func TestLinearizable(t *testing.T) {
	w := newWorld(t, setting{seed: 5, client: xdpfab.DomainAttr{GiveUp: 60 * time.Millisecond}})
	rnd := rand.New(rand.NewPCG(5, 5))
	for i := range 6 {
		w.mem[0] = 0
		linear(t, w, plan{actors: 3, depth: 1, limit: 60, seed: uint64(i)}, func() {
			for range 3 {
				w.wire.SetBoth(mixed(rnd))
				time.Sleep(20 * time.Millisecond)
				partition(w, rnd, 100*time.Millisecond)
			}
			w.heal()
		})
	}
}
