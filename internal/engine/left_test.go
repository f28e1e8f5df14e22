// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

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

// mortal returns a change of a configuration that notes the sessions which are served.
func mortal(n **node, life uint64, all *[]survivor) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Life = life
		c.Serve = func(now int64, p session.TargetParams) engine.Served {
			s := (*n).exec.Begin(now, p, nil)
			if p.Memo != nil {
				*all = append(*all, survivor{s, p.Local, p.Memo})
			}
			return s
		}
	}
}

// die ends the second node without a word. Another one takes its place, of the same life
// and with the same memory; if keeps is set, it goes on with the sessions.
func (bn *bench) die(all *[]survivor, keeps bool) {
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
	bn.b = bn.nodeThat(cable, macB, session.Config{GiveUp: time.Hour}, mortal(&bn.b, old.Life(), all))
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

// A process dies in the middle of traffic, again and again. If executor and memo survive,
// every operation succeeds, once. If they do not, those in flight are unknown: the next
// process is of the same life, so nothing restarts, and it does not know the session.
func TestProcessDies(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps=%t", keeps), func(t *testing.T) {
			const n, deaths = 3000, 12
			cfg := session.Config{GiveUp: time.Hour}
			bn := newBench(t, 1, cfg)
			var all []survivor
			bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 77, &all))
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
			sum, good, unknown := int(binary.LittleEndian.Uint64(mem[8:])), r.fates[engine.Success], r.fates[engine.Unknown]
			if good+unknown != n || sum < good || sum > n || keeps && sum != good || !keeps && unknown == 0 {
				t.Errorf("the word holds %d; %d of %d succeeded, %d are unknown; %v", sum, good, n, unknown, r.fates)
			}
			bn.a.Publish()
			if c := bn.a.Counters(); keeps && c[engine.SessionsOpened] != 1 {
				t.Errorf("%d sessions were opened, want the one that goes on", c[engine.SessionsOpened])
			}
		})
	}
}

// What cannot be adopted is said, one by one, and nothing of it stays behind.
func TestAdoptRefuses(t *testing.T) {
	cfg := session.Config{}
	bn := newBench(t, 1, cfg)
	var all []survivor
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 77, &all))
	bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	var r results
	bn.fetchAdd(bn.peer(0), &r, 7, 8, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	memo, state, id := all[0].memo(), []byte(`"another sort"`), all[0].id
	next := bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 77, new([]survivor)))
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
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, mortal(&bn.b, 77, &all))
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
	bn.b.Depart()
	add(bn.peer(1)) // which no endpoint takes: the next process says so
	some("a hello", engine.SessionsAccepted, hellos)
	was := bn.b
	bn.b = bn.nodeThat(was.port, macB, cfg, mortal(&bn.b, was.Life(), new([]survivor)))
	bn.b.Depart() // it has forgotten the session
	add(p)
	some("a frame of an unknown session", engine.UnknownSession, 0)
	bn.b = was
	bn.die(&all, true)
	bn.until(func() bool { return r.n == 3 })
	if sum := binary.LittleEndian.Uint64(mem[8:]); r.fates[engine.Success] != 2 || r.fates[engine.NotExecuted] != 1 || sum != 2 {
		t.Errorf("the word holds %d; %v, %+v", sum, r.fates, r.last)
	}
}
