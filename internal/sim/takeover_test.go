// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// takeOver has other engines go on with the sessions that peers have with the node, as
// those of another process would. What has arrived and was not taken is lost.
func (n *node) takeOver(t *testing.T) {
	t.Helper()
	var all []engine.PairState
	for _, e := range n.engs {
		e.Pause()
		pairs, err := e.Export()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pairs...)
	}
	all = append(all, n.eng.ExportIdle()...)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var ring, in []byte
	if n.guest != nil {
		ring, in = n.guest.leave(t)
	}
	life := n.eng.Life()
	for _, m := range n.mems {
		m.Close()
	}
	n.engs, n.execs, n.mems, n.ports = nil, nil, nil, nil
	n.engines([32]byte{}, life)
	n.eng = n.engs[0]
	engine.NewGroup(n.engs)
	if n.guest != nil {
		n.guest.join(t, ring, in)
	}
	var same []engine.PairState
	if err := json.Unmarshal(text, &same); err != nil {
		t.Fatal(err)
	}
	n.eng.Pause()
	if err := n.eng.Import(same, nil); err != nil {
		t.Fatal(err)
	}
	n.eng.Resume()
	n.wake(n.w.now)
}

// Processes take over a target in the middle of traffic through a bad network. Each
// operation runs once, and its initiator notices nothing.
func TestTakeover(t *testing.T) {
	const total, every = 4000, 300 * microsecond
	w := lab(plan{nodes: 2, delay: 20 * microsecond, rates: rates{loss: 0.02, duplicate: 0.05}})
	f := newFlow(t, w, 0, 1, wire.VerbFetch, 1, 64, total)
	target, moves := w.nodes[1], 0
	var move func()
	move = func() {
		if f.left > 0 {
			target.takeOver(t)
			moves++
			w.at(w.now+every, move)
		}
	}
	w.at(w.now+every, move)
	f.finish(t)
	sum := binary.LittleEndian.Uint64(target.regions[arrayRegion].bytes)
	if sum != total || f.fates[engine.Success] != total || moves < 5 {
		t.Errorf("sum %d, successes %d, want %d; %d takeovers, want at least 5", sum, f.fates[engine.Success], total, moves)
	}
}
