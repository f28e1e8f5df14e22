// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// survivor is what outlives a process: an executor, and what was written down of its
// session.
type survivor struct {
	s    *executor.Session
	id   wire.SessionID
	memo func() []byte
}

// lasting is the life of what outlives the processes of these tests.
const lasting = 77

// mortal returns a change of a configuration that notes the sessions which are served. A
// life of 0 is a new one.
func mortal(n **node, life uint64, all *[]survivor) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Life, c.Resident = life, lasting
		c.Serve = func(now int64, p session.TargetParams) engine.Served {
			s := (*n).exec.Begin(now, p, nil)
			if p.Memo != nil {
				*all = append(*all, survivor{s, p.Local, p.Memo})
			}
			return s
		}
	}
}

// die ends the second node without a word. Another one takes its place, with the same
// memory; if keeps is set, it goes on with the sessions.
func (bn *bench) die(all *[]survivor, keeps bool) {
	bn.t.Helper()
	bn.next(all, keeps, 0)
}

// next is die, and the process that comes next has a certain life, 0 for a new one.
func (bn *bench) next(all *[]survivor, keeps bool, life uint64) {
	bn.t.Helper()
	old, cable := bn.b, bn.b.port
	var left []engine.LeftSession
	for _, x := range *all {
		state, err := x.s.State(bn.now)
		if err != nil {
			bn.t.Fatal(err)
		}
		if keeps {
			left = append(left, engine.LeftSession{ID: x.id, Memo: x.memo(), Live: true, Served: state})
		}
	}
	var lost [64][]byte
	for cable.Receive(lost[:]) > 0 {
		cable.Release()
	}
	*all = nil
	bn.b = bn.nodeThat(cable, macB, session.Config{GiveUp: time.Hour}, mortal(&bn.b, life, all))
	for _, r := range old.table.All() {
		key := r.Key()
		again, err := bn.b.table.Register(r.Memory(), mr.Options{Key: &key, Access: r.Access(), Length: r.Len(), Incarnation: r.Incarnation()})
		if err != nil {
			bn.t.Fatal(err)
		}
		bn.t.Cleanup(func() { _ = again.Close() })
	}
	bn.b.Pause()
	bn.b.Adopt(left, func(l engine.LeftSession, err error) { bn.t.Errorf("session %#x is lost: %v", uint32(l.ID), err) })
	bn.check()
	bn.b.Resume()
}

// A process dies in the middle of traffic, again and again. If executor and memo
// survive, every operation succeeds, once. If they do not, those in flight met a restart,
// and those that wait do not run, since they name no registration.
func TestProcessDies(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps=%t", keeps), func(t *testing.T) {
			const n, deaths = 3000, 12
			cfg := session.Config{GiveUp: time.Hour}
			bn := newBench(t, 1, cfg)
			var all []survivor
			bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 0, &all))
			mem := bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
			p := bn.peer(0)
			var r results
			died := 0
			for i := 0; i < n; {
				for room := 100; room > 0 && i < n && bn.fetchAdd(p, &r, 7, 8, 1, nil); room-- {
					i++
				}
				if bn.step(); died < deaths && i > (died+1)*n/(deaths+1) {
					bn.die(&all, keeps)
					died++
				}
			}
			bn.until(func() bool { return r.n == n })
			sum, good, lost := int(binary.LittleEndian.Uint64(mem[8:])), r.fates[engine.Success], r.fates[engine.Restarted]
			if r.fates[engine.Unknown] != 0 || sum < good || sum > good+lost || keeps && good != n || !keeps && lost == 0 {
				t.Errorf("the word holds %d; %d of %d succeeded, %d met a restart; %v", sum, good, n, lost, r.fates)
			}
			bn.a.Publish()
			if c := bn.a.Counters(); keeps && c[engine.SessionsOpened] != 1 {
				t.Errorf("%d sessions were opened, want the one that goes on", c[engine.SessionsOpened])
			}
		})
	}
}

// Operations that name a registration outlast a process that dies before they are sent:
// the registration tells whether its memory is still there.
func TestProcessDiesBeforeItIsAsked(t *testing.T) {
	for _, meant := range []bool{true, false} {
		bn := newBench(t, 1, session.Config{GiveUp: time.Hour, Window: 1})
		var all []survivor
		bn.b = bn.nodeThat(bn.b.port, macB, session.Config{GiveUp: time.Hour}, mortal(&bn.b, 0, &all))
		bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		var r results
		add := func(incarnation uint32) {
			op := bn.a.ring.Claim()
			op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), &r, 7, 8, 1
			op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
			op.Incarnation, op.Result = incarnation, make([]byte, 8)
			op.SetOperands(make([]byte, 8), nil)
			op.Publish()
		}
		incarnation := uint32(0)
		if meant {
			incarnation = bn.b.table.All()[0].Incarnation()
		}
		add(incarnation)
		bn.until(func() bool { return r.n == 1 })
		bn.b.Detach() // so that nothing is answered any more
		add(incarnation)
		bn.a.Step() // it is sent, and the next ones wait
		add(incarnation)
		bn.a.Step()
		add(incarnation + 1)
		bn.die(&all, false)
		bn.until(func() bool { return r.n == 4 })
		want := [4]int{engine.Success: 1, engine.NotExecuted: 2, engine.Restarted: 1}
		if meant {
			want = [4]int{engine.Success: 2, engine.NotExecuted: 1, engine.Restarted: 1}
		}
		if r.fates != want || r.last.Outcome != engine.NotExecuted {
			t.Errorf("with an incarnation %t: %v, want %v", meant, r.fates, want)
		}
	}
}

// A watch ends with the process of its peer, also in a session that goes on, and tells
// that it restarted. A process that takes over ends no watch.
func TestWatchOfAProcess(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps=%t", keeps), func(t *testing.T) {
			cfg := session.Config{GiveUp: 10 * time.Second}
			bn := newBench(t, 1, cfg)
			var all []survivor
			bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 0, &all))
			bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
			p := bn.peer(0)
			var added, watched results
			add := func() {
				t.Helper()
				n := added.n + 1
				bn.fetchAdd(p, &added, 7, 8, 1, nil)
				bn.until(func() bool { return added.n == n })
			}
			watch := func() {
				op := bn.a.ring.Claim()
				op.Peer, op.Context, op.Verb, op.Count, op.Flags = p.ID(), &watched, engine.VerbWatch, 0, 0
				op.Publish()
			}
			told := func(n int) {
				t.Helper()
				bn.until(func() bool { return watched.n == n })
				if watched.last.Reason != session.PeerRestarted {
					t.Fatalf("watch %d: %+v, want to hear that the peer restarted", n, watched.last)
				}
			}
			quiet := func(n int) {
				t.Helper()
				for end := bn.now + int64(time.Minute); bn.now < end; bn.step() {
				}
				if watched.n != n {
					t.Fatalf("a watch ended: %+v", watched.last)
				}
			}
			add()
			watch()
			quiet(0)
			bn.die(&all, keeps)
			told(1)
			bn.die(&all, keeps)
			watch() // nobody has noticed yet
			told(2)
			watch()
			quiet(2)
			bn.next(&all, true, bn.b.Life())
			quiet(2)
			bn.die(&all, keeps)
			told(3)
			add()
			quiet(3) // without a watch the session ends meanwhile
			add()
			if added.fates[engine.Success] != added.n {
				t.Errorf("%v, the last one %+v; a restart that was told by a watch is told again", added.fates, added.last)
			}
			bn.a.Publish()
			if c := bn.a.Counters(); keeps && (c[engine.SessionsOpened] != 2 || c[engine.Invalid] != 0) || c[engine.PeersRestarted] != 3 {
				t.Errorf("%d sessions were opened, want one that goes on and one after it; %d restarts were noticed, want 3", c[engine.SessionsOpened], c[engine.PeersRestarted])
			}
		})
	}
}

// What cannot be adopted is said, one by one, and nothing of it stays behind.
func TestAdoptRefuses(t *testing.T) {
	cfg := session.Config{}
	bn := newBench(t, 1, cfg)
	var all []survivor
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 0, &all))
	bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	var r results
	bn.fetchAdd(bn.peer(0), &r, 7, 8, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	memo, state, id := all[0].memo(), []byte(`"another sort"`), all[0].id
	next := bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 0, new([]survivor)))
	next.Pause()
	why := map[string]error{}
	for name, left := range map[string][]engine.LeftSession{
		"no memo": {{ID: id, Live: true}}, "another's memo": {{ID: id + 1, Memo: memo, Live: true}},
		"another state": {{ID: id, Memo: memo, Live: true, Served: state}},
	} {
		next.Adopt(left, func(_ engine.LeftSession, err error) { why[name] = errors.Join(why[name], err) })
		if why[name] == nil {
			t.Errorf("%s: adopted", name)
		}
		if err := next.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, err := all[0].s.State(bn.now)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	one := engine.LeftSession{ID: id, Memo: memo, Live: true, Served: good}
	next.Adopt([]engine.LeftSession{one, one}, func(engine.LeftSession, error) { lost++ })
	if err := next.Check(); lost != 1 || err != nil {
		t.Errorf("the same session twice: %d are lost, want one; %v", lost, err)
	}
}

// While a process ends that leaves its executor to the next one, no session begins, and
// what it does not know is not answered, so nobody hears how far a session has got that
// goes on. The next process answers.
func TestDepart(t *testing.T) {
	cfg := session.Config{GiveUp: time.Hour}
	bn := newBench(t, 1, cfg)
	var all []survivor
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 0, &all))
	mem := bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	add := func(p *engine.Peer) {
		t.Helper()
		if !bn.fetchAdd(p, &r, 7, 8, 1, nil) {
			t.Fatal("no room to post")
		}
	}
	add(p)
	bn.until(func() bool { return r.n == 1 })
	some := func(what string, want engine.Counter, n uint64) {
		t.Helper()
		for range 200 {
			bn.step()
		}
		bn.b.Publish()
		if c := bn.b.Counters(); r.n != 1 || c[engine.Hellos] > n || c[want] == 0 {
			t.Errorf("%s: %d operations are over, and %d hellos were looked at; want 1 and %d; %v %d", what, r.n, c[engine.Hellos], n, want, c[want])
		}
	}
	bn.b.Publish()
	hellos := bn.b.Counters()[engine.Hellos]
	bn.b.Detach()
	add(bn.peer(1)) // which no endpoint takes: the next process says so
	some("a hello", engine.SessionsAccepted, hellos)
	was := bn.b
	bn.b = bn.nodeThat(was.port, macB, cfg, mortal(&bn.b, 0, new([]survivor)))
	bn.b.Detach() // it has forgotten the session
	add(p)
	some("a frame of an unknown session", engine.UnknownSession, 0)
	bn.b = was
	bn.die(&all, true)
	bn.until(func() bool { return r.n == 3 })
	if sum := binary.LittleEndian.Uint64(mem[8:]); r.fates[engine.Success] != 2 || r.fates[engine.NotExecuted] != 1 || sum != 2 {
		t.Errorf("the word holds %d; %v, %+v", sum, r.fates, r.last)
	}
}
