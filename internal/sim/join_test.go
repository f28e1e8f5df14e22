// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// silenced is a flow whose target fell silent while an operation was in flight: that has
// been given up, and sessions ask for its outcome from now on.
func silenced(t *testing.T, giveUp time.Duration) *flow {
	t.Helper()
	w := lab(plan{nodes: 2, delay: cableDelay, session: session.Config{GiveUp: giveUp}})
	f := newFlow(t, w, 0, 1, wire.VerbFetch, 1, 1, 1)
	f.finish(t)
	w.net.drop = func(_, _ *node, _ []byte) bool { return true }
	f.left = 1
	f.finish(t)
	if f.fates[engine.Unknown] != 1 {
		t.Fatalf("fates %v, want an unknown outcome", f.fates)
	}
	return f
}

// An operation that joins a session which asks for the outcomes of others has the whole
// give-up time for itself, however long that session has asked in vain: it runs if the
// target can be reached again, and is given up after that time if not.
func TestJoiningAskerHasOwnTime(t *testing.T) {
	const giveUp = 200 * millisecond
	for late := giveUp / 10; late < 2*giveUp; late += 3 * giveUp / 20 {
		for _, heals := range []bool{true, false} {
			f := silenced(t, time.Duration(giveUp))
			w := f.w
			w.until(w.now+late, func() bool { return false })
			if heals {
				w.net.drop = nil
			}
			f.left, f.doneAt, f.fates = 1, nil, [4]int{}
			began := w.now
			f.finish(t)
			switch took := f.doneAt[0] - began; {
			case heals && (f.fates[engine.Success] != 1 || took > giveUp/10):
				t.Errorf("%d ms after the give-up: fates %v after %d ms, want success at once", late/1e6, f.fates, took/1e6)
			case !heals && (f.fates[engine.NotExecuted] != 1 || took < giveUp || took > giveUp+giveUp/10):
				t.Errorf("%d ms after the give-up: fates %v after %d ms, want it given up after %d ms", late/1e6, f.fates,
					took/1e6, giveUp/1e6)
			}
		}
	}
}
