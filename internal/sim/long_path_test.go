// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Congestion control finds out that a path is long if no round trip to anybody was short,
// and BaseRTT says so where one was.
func TestLongPath(t *testing.T) {
	const roundTrip, requests = 600 * microsecond, 2000
	took := func(base time.Duration, shortToo bool) int64 {
		w := lab(plan{nodes: 3, delay: roundTrip / 2, session: session.Config{BaseRTT: base}})
		if shortToo {
			w.net.links[0][2].delay, w.net.links[2][0].delay = cableDelay, cableDelay
			newFlow(t, w, 0, 2, wire.VerbAtomic, 1, 1, 1).finish(t)
		}
		newFlow(t, w, 0, 1, wire.VerbAtomic, 1, 1, 1).finish(t)
		f, begin := newFlow(t, w, 0, 1, wire.VerbAtomic, frameWords, 200, requests), w.now
		f.finish(t)
		return w.now - begin
	}
	found, mixed, told := took(0, false), took(0, true), took(time.Duration(roundTrip), true)
	t.Logf("%d full frames over a path of %d µs took %d ms, %d ms beside a short path, and %d ms with BaseRTT",
		requests, roundTrip/microsecond, found/millisecond, mixed/millisecond, told/millisecond)
	if found > 2*told {
		t.Error("the window of a long path stays small")
	}
	if told*10 > mixed {
		t.Error("BaseRTT does not widen the window of a long path beside a short one")
	}
}
