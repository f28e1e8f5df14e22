// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A path whose idle round trip is much longer than BaseRTT seems to have a queue, so a
// frame or two are in flight at a time. With BaseRTT of that round trip the window fills
// the path.
func TestBaseRTTOfLongPath(t *testing.T) {
	const roundTrip, requests = 600 * microsecond, 2000
	took := func(base int64) int64 {
		w := lab(plan{nodes: 2, delay: roundTrip / 2, session: session.Config{BaseRTT: time.Duration(base)}})
		newFlow(t, w, 0, 1, wire.VerbAtomic, 1, 1, 1).finish(t)
		f, begin := newFlow(t, w, 0, 1, wire.VerbAtomic, frameWords, 200, requests), w.now
		f.finish(t)
		return w.now - begin
	}
	short, right := took(50*microsecond), took(roundTrip)
	t.Logf("%d full frames over a path of %d µs took %d ms, and %d ms with its BaseRTT",
		requests, roundTrip/microsecond, short/millisecond, right/millisecond)
	if right*10 > short {
		t.Error("BaseRTT does not widen the window of a long path")
	}
}
