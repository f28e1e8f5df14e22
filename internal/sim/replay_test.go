// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A watch of a target that died ends, though all that the target ever sent comes
// again and again.
func TestReplayKeepsNoWatch(t *testing.T) {
	p := plan{nodes: 4, delay: cableDelay} // of which two know all features
	p.session.GiveUp = time.Second
	w := lab(p)
	var capture [][]byte
	w.net.arrived = func(_, to *node, _ int64, packet []byte) {
		if to.index == 1 {
			capture = append(capture, append([]byte(nil), packet...))
		}
	}
	f := newFlow(t, w, 1, 3, wire.VerbFetch, 1, 1, 10)
	f.finish(t)
	op := f.ring.Claim()
	op.Peer, op.Context, op.Verb, op.Count, op.Flags = f.peer.ID(), f, engine.VerbWatch, 0, 0
	op.Publish()
	f.outstanding++
	w.nodes[1].wake(w.now)
	w.until(w.now+5*second, func() bool { return false })
	if f.outstanding == 0 {
		t.Fatal("the watch has ended, though the target lives")
	}
	w.nodes[3].crash()
	died := w.now
	for f.outstanding > 0 && w.now < died+3*second {
		for _, packet := range capture {
			w.nodes[1].deliver(append([]byte(nil), packet...)) // the port spoils it
		}
		w.until(w.now+50*millisecond, func() bool { return f.outstanding == 0 })
	}
	if f.outstanding > 0 || w.failure != nil {
		t.Errorf("%v after the death of the target the watch goes on: failure %v", time.Duration(w.now-died), w.failure)
	}
}
