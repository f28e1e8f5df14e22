// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The goals of congestion control.
const (
	minGoodput  = 0.8
	maxRTT      = 3.0 // times the base queueing bound
	minFairness = 0.9
)

// Shape of the incast.
const (
	initiators  = 64
	warmUp      = 10 * millisecond
	measured    = 40 * millisecond
	switchQueue = 2 * millisecond // the queue of a shallow switch: 2.5 MB at 10 Gbit/s
)

// TestIncast has many initiators send to one target as fast as they may. Queues
// build up only at the target's downlink.
//
// The base queueing bound is the round trip that no window can avoid when every
// initiator has one frame under way and all arrive at once: the delay of the
// cables, there and back, plus one frame of every initiator serialised at the
// bottleneck. A round trip is measured as the time of a request packet from its
// sender's NIC to the target, queue included, plus the cable back, which no
// other node uses.
func TestIncast(t *testing.T) {
	t.Parallel()
	long(t)
	t.Run("congestion window", func(t *testing.T) {
		goodput, rtt, fairness := incast(t, session.Config{})
		if goodput < minGoodput || rtt > maxRTT || fairness < minFairness {
			t.Errorf("want goodput of at least %v, round trips within %v times the bound, fairness of at least %v",
				minGoodput, maxRTT, minFairness)
		}
	})
	// The same run with only the window and the credits shows what congestion
	// control is for.
	t.Run("static window", func(t *testing.T) {
		if _, rtt, _ := incast(t, session.Config{StaticWindow: true}); rtt < 2*maxRTT {
			t.Errorf("round trips within %.1f times the bound without any congestion control: then it has no use", rtt)
		}
	})
}

// incast runs the scenario and returns the goodput as a share of the bottleneck,
// the p99 of round trips in units of the base queueing bound, and Jain's index.
func incast(t *testing.T, cfg session.Config) (goodput, rtt, fairness float64) {
	w := lab(plan{nodes: 1 + initiators, delay: cableDelay, session: cfg})
	w.net.down[0] = pipe{rate: tenGigabit, limit: switchQueue}
	var (
		flows []*flow
		trips []int64
		bytes int64 // of request packets that reached the target, each once
		seen  = map[frameID]bool{}
		size  int
	)
	for i := range initiators {
		f := newFlow(t, w, i+1, 0, wire.VerbAtomic, frameWords, 128, 1<<30)
		flows = append(flows, f)
		w.at(w.now+int64(i)*100, f.fill) // not all in one nanosecond
	}
	from, to := w.now+warmUp, w.now+warmUp+measured
	w.net.arrived = func(sender, receiver *node, sent int64, packet []byte) {
		h, ok := isRequest(packet)
		if !ok || receiver.index != 0 || w.now < from {
			return
		}
		trips = append(trips, w.now-sent+cableDelay)
		if id := (frameID{sender.index, h.Session, h.Epoch, h.PSN}); !seen[id] {
			seen[id], size = true, len(packet)
			bytes += int64(len(packet) + wireOverhead)
		}
	}
	w.until(from, nil)
	before := make([]int, initiators)
	for i, f := range flows {
		before[i] = len(f.doneAt)
	}
	w.until(to, nil)

	share := make([]float64, initiators)
	for i, f := range flows {
		share[i] = float64(len(f.doneAt) - before[i])
	}
	bound := 2*cableDelay + int64(initiators*float64(size+wireOverhead)/tenGigabit)
	slices.Sort(share)
	t.Logf("frames of each initiator: least %v, median %v, most %v", share[0], share[initiators/2], share[initiators-1])
	slices.Sort(trips)
	p99 := trips[len(trips)*99/100]
	goodput = float64(bytes) / (tenGigabit * float64(measured))
	fairness = jain(share)
	t.Logf("goodput %.1f %% of the bottleneck; round trip p50 %.1f µs, p99 %.1f µs = %.2f × the base queueing bound of "+
		"%.1f µs; Jain %.3f; %d packets dropped, %.2f %% of the bytes sent again",
		100*goodput, float64(trips[len(trips)/2])/1e3, float64(p99)/1e3, float64(p99)/float64(bound), float64(bound)/1e3,
		fairness, w.counts[tailDropped], 100*float64(w.tap.resentBytes)/float64(w.tap.requestBytes))
	return goodput, float64(p99) / float64(bound), fairness
}

// jain returns the fairness index of Jain: 1 when all have the same, 1/n when
// one has everything.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}
