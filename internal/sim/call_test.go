// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// function answers the calls of one session, each after a time of its own.
type function struct {
	t     *callTrial
	life  int    // of its node
	guest *guest // that has it; nil if it is the node's
	ended []*reply
	told  func()
	gone  bool
}

// alive reports whether the function still runs, and has the session.
func (f *function) alive() bool {
	return !f.gone && f.t.w.nodes[0].life == f.life && (f.guest == nil || !f.guest.gone)
}

type reply struct {
	psn  uint32
	body [8]byte
	said wire.Reply
}

// Ask implements session.Callee, as all that follow do.
func (f *function) Ask(psn uint32, c *wire.Call) wire.Status {
	t, id := f.t, binary.LittleEndian.Uint64(c.Request)
	if t.dice.IntN(20) == 0 {
		return wire.StatusNoRoom
	}
	t.runs[id]++
	r := &reply{psn: psn}
	binary.LittleEndian.PutUint64(r.body[:], 3*id)
	r.said = wire.Reply{Length: 8, Bytes: r.body[:]}
	t.w.at(t.w.now+t.dice.Int64N(1<<t.dice.IntN(28)), func() {
		if f.alive() {
			f.ended = append(f.ended, r)
			f.told()
			t.w.nodes[0].wake(t.w.now)
		}
	})
	return wire.StatusOK
}

func (f *function) Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool) {
	if len(f.ended) == 0 {
		return 0, nil, 0, false
	}
	return f.ended[0].psn, &f.ended[0].said, wire.StatusOK, true
}

func (f *function) Drop()   { f.ended = f.ended[1:] }
func (f *function) Recall() {} // each has begun
func (f *function) Close()  { f.gone = true }

// callTrial is a node that calls a function of another one.
type callTrial struct {
	w     *world
	dice  dice
	ring  *engine.Ring
	peer  *engine.Peer
	runs  map[uint64]int
	calls []*simCall
	open  int
	ends  [4]int
}

// simCall is one call.
type simCall struct {
	t      *callTrial
	id     uint64
	result [wire.ReplyHead + 8]byte
	ended  bool
	end    engine.Result
}

// Complete implements engine.Completer.
func (x *simCall) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	if x.ended {
		x.t.w.fail("call %d has ended twice", x.id)
	}
	x.ended, x.end = true, c.Result(later)
	x.t.open--
	x.t.ends[c.Outcome]++
}

// call posts a call, if there is room.
func (t *callTrial) call() {
	op := t.ring.Claim()
	if op == nil {
		return
	}
	x := &simCall{t: t, id: uint64(len(t.calls) + 1)}
	var request [8]byte
	binary.LittleEndian.PutUint64(request[:], x.id)
	op.Peer, op.Context, op.Key, op.Offset, op.Count = t.peer.ID(), x, 0, 8, 8
	op.Verb, op.Opcode, op.Datatype, op.Result = wire.VerbCall, wire.OpWrite, wire.Byte, x.result[:]
	op.SetOperands(request[:], nil)
	op.Publish()
	t.calls = append(t.calls, x)
	t.open++
	t.w.nodes[1].wake(t.w.now)
}

// check compares what the callers were told with what the function has had.
func (t *callTrial) check() error {
	for _, x := range t.calls {
		n, end := t.runs[x.id], x.end
		if later := end.Later; later != nil {
			select {
			case <-later.Done():
				settled, data := later.Outcome()
				if end = settled; settled.Outcome == engine.Success {
					copy(x.result[:], data)
				}
			default:
			}
		}
		least, most := 0, 1
		switch end.Outcome {
		case engine.Success:
			least = 1
			if r := engine.ReplyOf(x.result[:]); r.Length != 8 || len(r.Bytes) != 8 || binary.LittleEndian.Uint64(r.Bytes) != 3*x.id {
				return fmt.Errorf("the reply to call %d is %+v", x.id, r)
			}
		case engine.NotExecuted:
			most = 0
		}
		if !x.ended || n < least || n > most {
			return fmt.Errorf("call %d has ended: %t, %+v; the function had it %d times", x.id, x.ended, end, n)
		}
	}
	return nil
}

// Under faults of the network and restarts of the target, a function has each request
// once or not at all, as the caller is told, and replies are those to the requests.
func TestCallsUnderFaults(t *testing.T) {
	tryCalls(t, 12, plan{}, func(x *callTrial, seed uint64) (trouble func()) {
		target := x.w.nodes[0]
		target.callee = func(_ uint16, _ wire.Addr, _ session.Party, ended func()) session.Callee {
			return &function{t: x, life: target.life, told: ended}
		}
		return func() {
			switch seed % 3 {
			case 1:
				x.endTargets()
			case 2:
				x.restart()
			}
		}
	})
}

// tryCalls runs trials of a plan with so many seeds. prepare gives the target its
// function, and returns what happens to it now and then.
func tryCalls(t *testing.T, seeds uint64, p plan, prepare func(x *callTrial, seed uint64) (trouble func())) {
	t.Helper()
	p.nodes, p.delay, p.session = 2, cableDelay, session.Config{GiveUp: 2e9}
	p.rates = rates{loss: 0.08, duplicate: 0.1, reorder: 0.1, corrupt: 0.02}
	var ends [4]int
	for seed := range seeds {
		w := lab(p)
		w.plan.tick = 20 * microsecond
		x := &callTrial{w: w, dice: newDice(seed), runs: map[uint64]int{}}
		trouble := prepare(x, seed)
		if err := x.run(seed, trouble); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, n := range x.ends {
			ends[i] += n
		}
	}
	t.Logf("%d succeeded, %d were not executed, of %d the outcome is unknown, %d met a restart", ends[0], ends[1], ends[2], ends[3])
	for i, n := range ends {
		if n == 0 && engine.Outcome(i) != engine.Unknown {
			t.Errorf("no call ended with outcome %d", i)
		}
	}
}

// run has the caller call, with trouble in between, until all calls have ended.
func (t *callTrial) run(seed uint64, trouble func()) (err error) {
	w, target, caller := t.w, t.w.nodes[0], t.w.nodes[1]
	for _, n := range w.nodes { // now with the function, and all extensions
		n.crash()
		for n.features()&wire.FeatureCalls == 0 {
			n.life++
		}
		n.boot()
	}
	if t.ring, err = engine.NewRing(128, engine.Contexts{}); err != nil {
		return err
	}
	origin := caller.eng.NewOrigin(7)
	if seed%4 > 0 {
		origin = caller.eng.NewUnorderedOrigin(7)
	}
	caller.eng.AddRing(t.ring, origin)
	if t.peer, err = origin.NewPeer(caller.linkTo(target), 0, 0); err != nil {
		return err
	}
	for range 200 {
		t.call()
		w.until(w.now+t.dice.Int64N(2*millisecond), func() bool { return w.failure != nil })
		if t.dice.IntN(100) == 0 {
			trouble()
		}
	}
	w.until(w.now+100*second, func() bool { return t.open == 0 || w.failure != nil })
	if w.failure != nil {
		return fmt.Errorf("%v", w.failure)
	}
	return t.check()
}

// endTargets closes the endpoint, and opens it again.
func (t *callTrial) endTargets() {
	target := t.w.nodes[0]
	for _, e := range target.engs {
		e.EndTargets(0)
	}
	target.wake(t.w.now)
}

// restart begins another life of the target, of the same age.
func (t *callTrial) restart() {
	target := t.w.nodes[0]
	life := target.life
	target.crash()
	target.life = life + 4
	target.boot()
}
