// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// waitSwap posts a swap of 0 to v that waits in the first word of region 7.
func (bn *bench) waitSwap(p *engine.Peer, v uint64) *results {
	r := &results{}
	op := bn.a.ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 7, 0, 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbWait, uint8(atomic.Cswap), uint8(atomic.Uint64), 0
	op.Result = make([]byte, 8)
	op.SetOperands(binary.LittleEndian.AppendUint64(nil, v), make([]byte, 8))
	op.SetLimit(0)
	op.Publish()
	return r
}

// handedOver is a node that one operation waits at, and of which another has run, without
// its initiator knowing.
func handedOver(t *testing.T) (bn *bench, mem []byte, waits, ran *results) {
	cfg := session.Config{GiveUp: time.Minute, Features: wire.FeatureWaits}
	bn = newBench(t, 1, cfg)
	mem = bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
	mem[0] = 9
	p := bn.peer(0)
	ran = bn.waitSwap(p, 1)
	bn.until(func() bool { return bn.b.exec.Usage().Waiting == 1 })
	waits = bn.waitSwap(p, 2)
	bn.until(func() bool { return bn.b.exec.Usage().Waiting == 2 })
	for range 5 {
		bn.step()
	}
	bn.b.Pause()
	bn.b.port.SetFaults(port.Faults{Loss: 1}) // it cannot tell
	mem[0] = 0
	for _, r := range bn.b.table.All() {
		r.Changed()
	}
	if mem[0] != 1 {
		t.Fatalf("the word is %d", mem[0])
	}
	return bn, mem, waits, ran
}

// A process that hands its sessions over ends what waits in them, and the next one tells
// how. Nothing of it runs from then on, and nothing prevents the takeover.
func TestTakeoverEndsWaits(t *testing.T) {
	bn, mem, waits, ran := handedOver(t)
	cfg := session.Config{GiveUp: time.Minute, Features: wire.FeatureWaits}
	cable := bn.b.port
	bn.takeOver(cable, cfg)
	cable.SetFaults(port.Faults{})
	bn.until(func() bool { return ran.n+waits.n == 2 })
	if got := ran.last; got != (engine.Result{}) {
		t.Errorf("what had run: %+v", got)
	}
	if got := waits.last; got.Outcome != engine.NotExecuted {
		t.Errorf("what waited: %+v", got)
	}
	if mem[0] != 1 {
		t.Errorf("the word is %d", mem[0])
	}
	bn.until(func() bool { return bn.b.exec.Usage().Waiting == 0 })
	again := bn.waitSwap(bn.peer(0), 3)
	bn.until(func() bool { return bn.b.exec.Usage().Waiting == 1 })
	mem[0] = 0
	for _, r := range bn.b.table.All() {
		r.Changed()
	}
	if bn.until(func() bool { return again.n == 1 }); again.last != (engine.Result{}) || mem[0] != 3 {
		t.Errorf("%+v, word %d", again.last, mem[0])
	}
}

// A process that knows nothing of ends leaves them unknown, and no caller waits for ever.
func TestTakeoverForgetsWaits(t *testing.T) {
	bn, _, waits, ran := handedOver(t)
	all, err := bn.b.Export()
	if err != nil {
		t.Fatal(err)
	}
	bn.b.Close()
	for _, s := range all {
		var state map[string]any
		if err := json.Unmarshal(s.Current.Served, &state); err != nil {
			t.Fatal(err)
		}
		if state["Ends"] == nil {
			t.Fatal("there are no ends")
		}
		delete(state, "Ends")
		if s.Current.Served, err = json.Marshal(state); err != nil {
			t.Fatal(err)
		}
	}
	cfg := session.Config{GiveUp: time.Minute, Features: wire.FeatureWaits}
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, func(*engine.Config) {})
	bn.b.Pause()
	if err := bn.b.Import(all, nil); err != nil {
		t.Fatal(err)
	}
	bn.b.Resume()
	bn.b.port.SetFaults(port.Faults{})
	bn.until(func() bool { return ran.n+waits.n == 2 })
	for _, r := range []*results{ran, waits} {
		if r.last.Outcome != engine.Unknown || r.last.Reason != session.Forgotten {
			t.Errorf("%+v", r.last)
		}
	}
}
