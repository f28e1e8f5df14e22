// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// An initiator measures the round trip of each frame that was sent once, and a target the
// execution of some of them.
func TestLatenciesAreMeasured(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	out := make([]byte, 8)
	const frames = 640
	for n := range frames { // one at a time, so each has a frame of its own
		bn.fetchAdd(p, &r, 1, 0, 1, out)
		for r.n <= n {
			bn.step()
		}
	}
	total := func(l session.Latencies) (n uint64) {
		for _, x := range l.Buckets {
			n += x
		}
		return n
	}
	_, trips, _ := bn.a.Latencies()
	if n := total(trips); n != frames {
		t.Errorf("%d round trips for %d frames", n, frames)
	}
	// acks come between the frames, so which are timed depends on them
	if x, _, _ := bn.b.Latencies(); total(x) == 0 || total(x) > frames/32 {
		t.Errorf("%d executions are timed, want about one of 64 of %d", total(x), frames)
	}
}
