// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// tenGigabit is a line of 10 Gbit/s, in bytes per nanosecond.
const tenGigabit = 1.25

// cableDelay is the delay of the lab's links, one way.
const cableDelay = 10 * microsecond

// transfer sends frames one after another through a full window and returns
// when each completed, and the round trip of a frame at full window. Request
// frame number lose (from 0, first transmission) gets lost.
func transfer(t *testing.T, frames, lose int) (doneAt []int64, rtt int64) {
	t.Helper()
	w := lab(plan{nodes: 2, delay: cableDelay, downlink: tenGigabit})
	w.plan.session.GiveUp = 0
	f := newFlow(t, w, 0, 1, wire.VerbFetch, frameWords, 200, frames)
	seen := 0
	sentAt := map[uint32]int64{}
	w.net.drop = func(_, _ *node, packet []byte) bool {
		h, ok := isRequest(packet)
		if !ok || h.Flags&wire.FlagRetx != 0 {
			return false
		}
		sentAt[h.PSN] = w.now
		seen++
		return seen-1 == lose
	}
	w.net.arrived = func(_, to *node, _ int64, packet []byte) {
		frame, _, _ := wire.Decap(packet)
		if h, _, reason := wire.Parse(frame); to.index == 0 && reason == wire.ReasonOK && h.Type == wire.Response {
			if sent, ok := sentAt[h.PSN]; ok {
				rtt = max(rtt, w.now-sent)
			}
		}
	}
	f.finish(t)
	return f.doneAt, rtt
}

// A single lost frame is repaired within one round trip if others follow it.
func TestOneLossCostsOneRoundTrip(t *testing.T) {
	const frames = 600
	clean, rtt := transfer(t, frames, -1)
	worst, worstTotal := int64(0), int64(0)
	for lose := 100; lose < frames-10; lose += 35 {
		doneAt, _ := transfer(t, frames, lose)
		worst = max(worst, doneAt[lose]-clean[lose])
		worstTotal = max(worstTotal, doneAt[frames-1]-clean[frames-1])
	}
	t.Logf("round trip at full window %.1f µs; a lost frame is late by at most %.1f µs, the whole transfer by %.1f µs",
		float64(rtt)/1e3, float64(worst)/1e3, float64(worstTotal)/1e3)
	if worst > rtt {
		t.Errorf("a lost frame completes %d ns late, want at most the round trip, %d ns", worst, rtt)
	}
}

// The first frame that reaches a restarted node is answered with a reset, and the
// hello that follows by the node's new life, cookie first.
func TestRestartIsNoticedInThreeRoundTrips(t *testing.T) {
	w := lab(plan{nodes: 2, delay: cableDelay})
	warm := newFlow(t, w, 0, 1, wire.VerbFetch, 1, 1, 10)
	warm.finish(t)
	w.nodes[1].crash()
	w.nodes[1].boot()
	warm.left, warm.doneAt = 1, nil
	start := w.now
	warm.finish(t)
	const roundTrips = 6*cableDelay + 10*microsecond // and steps of spinning pollers
	took := warm.doneAt[0] - start
	t.Logf("restart noticed after %.1f µs, round trip %.1f µs", float64(took)/1e3, float64(2*cableDelay)/1e3)
	if took > roundTrips || warm.fates[engine.Restarted] != 1 {
		t.Errorf("noticed after %d ns with fates %v, want at most %d ns and one restart", took, warm.fates, roundTrips)
	}
}

// At a loss of 10 % in both directions little more is sent again than necessary:
// the requests that were lost, and those whose responses were.
func TestResendsStayNearTheMinimum(t *testing.T) {
	t.Parallel()
	long(t)
	w := lab(plan{nodes: 2, delay: cableDelay, downlink: tenGigabit})
	d := newDice(7)
	size := map[uint32]int{} // of requests, by psn
	minimum := 0
	w.net.drop = func(_, _ *node, packet []byte) bool {
		frame, _, _ := wire.Decap(packet)
		h, _, _ := wire.Parse(frame)
		if h.Type == wire.Request {
			size[h.PSN] = len(packet)
		}
		if h.Type == wire.Hello || h.Type == wire.HelloAck || !d.chance(0.1) {
			return false
		}
		if h.Type == wire.Request || h.Type == wire.Response {
			minimum += size[h.PSN]
		}
		return true
	}
	newFlow(t, w, 0, 1, wire.VerbFetch, frameWords, 200, 8_000).finish(t)
	ratio := float64(w.tap.resentBytes) / float64(minimum)
	t.Logf("%d bytes of requests, %d sent again, minimum %d: ratio %.2f", w.tap.requestBytes, w.tap.resentBytes, minimum, ratio)
	if ratio > 1.5 || ratio < 0.9 {
		t.Errorf("%.2f times the minimum was sent again, want at most 1.5", ratio)
	}
}

// A pause of up to 8 ms, when a node is off its core, is not taken for loss.
func TestStallsAreNotTakenForLoss(t *testing.T) {
	t.Parallel()
	long(t)
	w := lab(plan{nodes: 2, delay: cableDelay, downlink: tenGigabit, hiccups: 0.001})
	newFlow(t, w, 0, 1, wire.VerbFetch, frameWords, 200, 50_000).finish(t)
	share := float64(w.tap.resentBytes) / float64(w.tap.requestBytes)
	t.Logf("%d stalls, %.3f %% of the bytes sent again for nothing", w.counts[stalls], 100*share)
	if share > 0.01 || w.counts[stalls] < 10 {
		t.Errorf("%d stalls made %.2f %% of the bytes be sent again, want less than 1 %%", w.counts[stalls], 100*share)
	}
}
