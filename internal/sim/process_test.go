// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// die has another process take the node's place, with the memory of the arrays, which
// outlives it; if keeps is set, the sessions do so, too. What has arrived and was not
// taken is lost.
func (n *node) die(t *testing.T, keeps bool) {
	t.Helper()
	var sessions []engine.PairState
	for _, e := range n.engs {
		e.Pause()
		pairs, err := e.Export()
		if err != nil {
			t.Fatal(err)
		}
		if keeps {
			sessions = append(sessions, pairs...)
		}
	}
	for _, r := range n.regions {
		if r.deregister(); r.kind != arrayRegion && r.kind != hiddenRegion {
			r.wipe()
		}
	}
	for _, m := range n.mems {
		m.Close()
	}
	n.table, n.engs, n.execs, n.mems, n.ports, n.lasting = mr.NewTable(), nil, nil, nil, nil, 77
	arrays := n.regions[arrayRegion]
	arrays.incarnation = 7
	for _, r := range n.regions {
		r.register()
	}
	n.engines([32]byte{}, 0)
	n.eng = n.engs[0]
	engine.NewGroup(n.engs)
	n.eng.Pause()
	if err := n.eng.Import(sessions, nil); err != nil {
		t.Fatal(err)
	}
	n.eng.Resume()
	n.wake(n.w.now)
}

// sentry watches the peer of a flow, again and again.
type sentry struct {
	f    *flow
	told int // of restarts
	last engine.Result
}

func (s *sentry) watch() {
	op := s.f.ring.Claim()
	op.Peer, op.Context, op.Verb, op.Count, op.Flags = s.f.peer.ID(), s, engine.VerbWatch, 0, 0
	op.Publish()
	s.f.n.wake(s.f.w.now)
}

// Complete implements engine.Completer.
func (s *sentry) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	if s.last = c.Result(later); s.last.Reason == session.PeerRestarted {
		s.told++
	}
}

// Processes die in the middle of traffic, and something outlives them. A watch tells of
// each once. In a session that goes on, each operation runs once, and its initiator
// notices nothing. In another one, what was in flight met a restart, and what waited, by
// a key alone, does not run.
func TestProcessDies(t *testing.T) {
	const total, deaths = 2000, 4
	for _, keeps := range []bool{true, false} {
		w := lab(plan{nodes: 2, delay: 20 * microsecond, rates: rates{loss: 0.02, duplicate: 0.05}})
		target := w.nodes[1]
		target.die(t, false)
		f := newFlow(t, w, 0, 1, wire.VerbFetch, frameWords, 200, total)
		s, opened := &sentry{f: f}, func() uint64 {
			f.n.eng.Publish()
			return f.n.eng.Counters()[engine.SessionsOpened]
		}
		posted, ran := 0, target.regions[arrayRegion]
		for range deaths {
			f.left = total / deaths
			posted += f.left
			half := f.left / 2
			f.fill()
			w.until(w.now+100*second, func() bool { return f.left < half })
			s.watch()
			w.until(w.now+20*microsecond, func() bool { return false })
			target.die(t, keeps)
			told := s.told + 1
			f.finish(t)
			w.until(w.now+100*second, func() bool { return s.told >= told })
			if s.told != told {
				t.Fatalf("keeps=%t: %d deaths were told, want %d; %+v", keeps, s.told, told, s.last)
			}
		}
		sum, good, lost := int(binary.LittleEndian.Uint64(ran.bytes)), f.fates[engine.Success], f.fates[engine.Restarted]
		switch {
		case keeps && (sum != posted || good != posted || opened() != 1):
			t.Errorf("sum %d, successes %d, want %d; %d sessions, want the one that goes on", sum, good, posted, opened())
		case f.fates[engine.Unknown] != 0, sum < good, sum > good+lost:
			t.Errorf("keeps=%t: sum %d; %v", keeps, sum, f.fates)
		case !keeps && (lost == 0 || f.fates[engine.NotExecuted] == 0):
			t.Errorf("want operations that met a restart, and some that waited for it: %v", f.fates)
		}
	}
}
