// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// takeOver has another engine, on the same cable, go on with the sessions of the second
// node: their state goes through a text, and what is on its way to the node is lost.
func (bn *bench) takeOver(p engine.Port, cfg session.Config) {
	bn.t.Helper()
	bn.moveOn(p, cfg)
	bn.b.Resume()
}

// moveOn is takeOver without Resume.
func (bn *bench) moveOn(p engine.Port, cfg session.Config) {
	bn.t.Helper()
	bn.step()
	old := bn.b
	old.Pause()
	all, err := old.Export()
	if err != nil {
		bn.t.Fatal(err)
	}
	all = append(all, old.ExportIdle()...)
	old.Close()
	if u := old.exec.Usage(); !old.Idle() || u.Parties != 0 || u.Answers.Lent+u.Holds.Lent != 0 {
		bn.t.Fatalf("the old engine has something to send (%t), or its executor holds %+v", !old.Idle(), u)
	}
	text, err := json.Marshal(all)
	if err != nil {
		bn.t.Fatal(err)
	}
	var lost [64][]byte
	for p.Receive(lost[:]) > 0 {
		p.Release()
	}
	bn.b = bn.nodeThat(p, macB, cfg, func(c *engine.Config) { c.Life = old.Life() })
	for _, r := range old.table.All() {
		key := r.Key()
		o := mr.Options{Key: &key, Access: r.Access(), Length: r.Len(), Incarnation: r.Incarnation()}
		again, err := bn.b.table.Register(r.Memory(), o)
		if err != nil {
			bn.t.Fatal(err)
		}
		bn.t.Cleanup(func() { _ = again.Close() })
	}
	var same []engine.PairState
	if err := json.Unmarshal(text, &same); err != nil {
		bn.t.Fatal(err)
	}
	bn.b.Pause()
	if err := bn.b.Import(same, nil); err != nil {
		bn.t.Fatal(err)
	}
	bn.check()
}

// Sessions move from engine to engine in the middle of traffic, whatever the network
// does: each operation runs once, in order if there is one, and each is known to have
// succeeded.
func TestTakeover(t *testing.T) {
	for name, f := range map[string]port.Faults{"none": {}, "all": {Loss: 0.1, Duplicate: 0.2, Reorder: 0.2}} {
		for _, unordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("faults=%s,unordered=%t", name, unordered), func(t *testing.T) {
				for seed := range uint64(4) {
					takenOverUnderLoad(t, seed, f, unordered, nil)
				}
			})
		}
	}
	t.Run("sealed", func(t *testing.T) {
		takenOverUnderLoad(t, 1, port.Faults{Loss: 0.1, Duplicate: 0.2, Reorder: 0.2}, false, engine.WithGCM("a secret"))
	})
}

func takenOverUnderLoad(t *testing.T, seed uint64, f port.Faults, unordered bool, change func(*engine.Config)) {
	const n, moves = 3000, 12
	cfg := session.Config{GiveUp: time.Hour, Features: wire.FeatureUnordered}
	bn := newBench(t, seed, cfg)
	if change != nil {
		bn.change = change
		bn.a, bn.b = bn.node(bn.a.port, macA, cfg), bn.node(bn.b.port, macB, cfg)
	}
	mem := bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	cable := bn.b.port
	bn.a.port.SetFaults(f)
	cable.SetFaults(f)
	p := bn.peer(0)
	if unordered {
		p = bn.unorderedPeer()
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var r results
	out := make([][8]byte, n)
	moved := 0
	for i := 0; i < n; {
		for room := rng.IntN(256); room > 0 && i < n && bn.fetchAdd(p, &r, 7, 8, 1, fetchOrNot(i, out)); room-- {
			i++
		}
		if bn.step(); moved < moves && i > (moved+1)*n/(moves+1) {
			bn.takeOver(cable, cfg)
			moved++
		}
	}
	bn.until(func() bool { return r.n == n })
	if got := binary.LittleEndian.Uint64(mem[8:]); got != n || r.fates[engine.Success] != n || moved != moves {
		t.Fatalf("seed %d: sum %d, successes %d of %d, %d moves", seed, got, r.fates[engine.Success], n, moved)
	}
	seen := map[uint64]bool{}
	for i := range out {
		got := binary.LittleEndian.Uint64(out[i][:])
		if i%3 == 0 {
			continue
		}
		if seen[got] || !unordered && got != uint64(i) {
			t.Fatalf("seed %d: operation %d fetched %d: twice, or out of order", seed, i, got)
		}
		seen[got] = true
	}
	bn.a.Publish()
	if c := bn.a.Counters(); c[engine.SessionsOpened] != 1 {
		t.Errorf("seed %d: %d sessions were opened, want the one that moved", seed, c[engine.SessionsOpened])
	}
}

// Sessions that have moved are not forgotten for silence as long as the engine is paused:
// their peers could not be heard.
func TestPauseIsNoSilence(t *testing.T) {
	cfg := session.Config{GiveUp: 10 * time.Hour}
	bn := newBench(t, 1, cfg)
	bn.region(7, 8, mr.RemoteRead|mr.RemoteWrite)
	cable, p := bn.b.port, bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 7, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	bn.moveOn(cable, cfg)
	for range 20 * 60 * 60 { // 20 hours, in steps that a process takes that is not stopped
		bn.now += int64(time.Second)
		bn.b.Step()
	}
	bn.b.Publish()
	if n := bn.b.Counters()[engine.SessionsRetired]; n != 0 {
		t.Errorf("%d sessions were forgotten, want none", n)
	}
}

// guestInflow is where the messages of a guest go.
type guestInflow struct {
	session.Inflow
	restored uint64
	closed   int
}

func (*guestInflow) InProgress() (has, lacks uint64)  { return 0, 0 }
func (*guestInflow) State() session.InflowState       { return session.InflowState{Number: 7} }
func (in *guestInflow) Restore(s session.InflowState) { in.restored = s.Number }
func (in *guestInflow) Close()                        { in.closed++ }

// A session that the next process can do without, and cannot go on with, ends for the
// guest that receives its messages: not before the former process is sure to be over.
func TestSparedSessionEnds(t *testing.T) {
	cfg := session.Config{Features: wire.FeatureMessages}
	bn := newBench(t, 1, cfg)
	withInflow := func(in *guestInflow) func(c *engine.Config) {
		return func(c *engine.Config) {
			c.Life, c.Inflow = 9, func(uint16, wire.Addr) session.Inflow { return in }
		}
	}
	cable := bn.b.port
	bn.b = bn.nodeThat(cable, macB, cfg, withInflow(&guestInflow{}))
	bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 7, 8, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	bn.b.Pause()
	all, err := bn.b.Export()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %d pairs; want 1", err, len(all))
	}
	for _, spare := range []bool{false, true} {
		in := &guestInflow{}
		next := bn.nodeThat(cable, macB, cfg, withInflow(in))
		if next.exec, err = executor.New(next.mem, wire.MinMTU, 0); err != nil { // its buffers are too short
			t.Fatal(err)
		}
		next.Pause()
		if err := next.Import(all, func(uint16) bool { return spare }); (err == nil) != spare {
			t.Errorf("spare: %t: %v", spare, err)
		}
		if in.closed != 0 || in.restored != 7 {
			t.Errorf("spare: %t: closed %d times, restored as number %d; want 0 and 7", spare, in.closed, in.restored)
		}
		if !spare {
			next.DetachTargets()
		}
		next.Resume()
		if n := next.Usage().Sessions; (in.closed == 1) != spare || n != 0 {
			t.Errorf("spare: %t: closed %d times, %d sessions", spare, in.closed, n)
		}
		if err := errors.Join(next.Check(), next.exec.Check()); err != nil {
			t.Error(err)
		}
	}
}
