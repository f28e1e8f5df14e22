// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// stream is a number of requests without results, one after another, on a line of
// 10 Gbit/s.
type stream struct {
	requests, acks, marked int
	took                   int64
}

// streaming sends requests of a full frame from node 1, which knows all features, to
// another one, through a window.
func streaming(t *testing.T, to, window, requests int, delay int64) (s stream) {
	t.Helper()
	w := lab(plan{nodes: 4, delay: delay, downlink: tenGigabit, session: session.Config{Window: window}})
	w.plan.tick = 200
	newFlow(t, w, 1, to, wire.VerbAtomic, 1, 1, 1).finish(t)
	f := newFlow(t, w, 1, to, wire.VerbAtomic, frameWords, 200, requests)
	w.net.drop = func(from, _ *node, packet []byte) bool {
		if h, ok := isRequest(packet); ok {
			s.requests++
			if h.Flags&wire.FlagDelay != 0 {
				s.marked++
			}
		} else if from.index == to {
			s.acks++
		}
		return false
	}
	start := w.now
	f.finish(t)
	s.took = w.now - start
	if w.counts[resends] != 0 {
		t.Errorf("%d requests were sent again, and none was lost", w.counts[resends])
	}
	return s
}

// One ack serves about eight requests of a stream, which is as fast as the line, soon.
func TestStreamNeedsFewAcks(t *testing.T) {
	const requests = 2000
	s := streaming(t, 3, 64, requests, 3*cableDelay)
	t.Logf("%+v: %.2f requests an ack, %d ns a request", s, float64(s.requests)/float64(s.acks), s.took/requests)
	if s.requests != requests || s.acks > requests/7 || s.acks < requests/10 {
		t.Errorf("%d acks for %d requests, want one for about eight", s.acks, s.requests)
	}
	const line = 1227 // ns for a frame with its headers
	if s.took > requests*line*11/10 {
		t.Errorf("%d requests took %d ns, and the line %d", requests, s.took, requests*line)
	}
}

// An ack for a few requests, after a window that is no multiple of eight, does not beget
// others for as few.
func TestStreamHasNoSmallBursts(t *testing.T) {
	const requests = 17 * 100
	s := streaming(t, 3, 17, requests, cableDelay/5)
	t.Logf("%+v: %.2f requests an ack", s, float64(s.requests)/float64(s.acks))
	if s.acks > requests/7 {
		t.Errorf("%d acks for %d requests, want one for about eight", s.acks, s.requests)
	}
}

// A node that does not know the feature gets no flag of it.
func TestStreamToOldNode(t *testing.T) {
	if s := streaming(t, 2, 64, 200, cableDelay); s.marked != 0 {
		t.Errorf("%+v: want none marked", s)
	}
}

// A window of four is never shut for want of an ack.
func TestSmallWindowGetsAcks(t *testing.T) {
	const requests = 400
	s := streaming(t, 3, 4, requests, cableDelay)
	t.Logf("%+v: %.2f requests an ack, %d ns for each four", s, float64(s.requests)/float64(s.acks), 4*s.took/requests)
	const trip = 2*cableDelay + 5*microsecond // with two requests on the line, and steps
	if s.took > requests/4*trip {
		t.Errorf("%d requests took %d ns, want at most %d, a round trip for each four", requests, s.took, requests/4*trip)
	}
}

// The ack of a lone request leaves at once.
func TestLoneRequestIsAcknowledgedAtOnce(t *testing.T) {
	w := lab(plan{nodes: 4, delay: cableDelay})
	w.plan.tick = 200
	newFlow(t, w, 1, 3, wire.VerbAtomic, 1, 1, 1).finish(t)
	start := w.now
	newFlow(t, w, 1, 3, wire.VerbAtomic, 1, 1, 100).finish(t)
	trip := (w.now - start) / 100
	t.Logf("a round trip takes %d ns", trip)
	if trip > 2*cableDelay+3*microsecond {
		t.Errorf("a round trip takes %d ns, of which the way %d", trip, 2*cableDelay)
	}
}

// If the last request of a burst gets lost, so that no other follows, the acks of those
// before it are late by a pause, and not by a timeout.
func TestLastOneLostDelaysNoOther(t *testing.T) {
	w := lab(plan{nodes: 4, delay: cableDelay, downlink: tenGigabit})
	w.plan.tick = 200
	newFlow(t, w, 1, 3, wire.VerbAtomic, 1, 1, 1).finish(t)
	const requests = 4
	seen := 0
	w.net.drop = func(_, _ *node, packet []byte) bool {
		_, ok := isRequest(packet)
		if ok {
			seen++
		}
		return ok && seen == requests
	}
	start := w.now
	f := newFlow(t, w, 1, 3, wire.VerbAtomic, frameWords, requests, requests)
	f.finish(t)
	if w.counts[resends] != 1 {
		t.Errorf("%d requests were sent again, want the one that was lost", w.counts[resends])
	}
	for i, at := range f.doneAt[:requests-1] {
		if took := at - start; took > millisecond { // a timeout is ten times as long
			t.Errorf("request %d has taken %d ns, of which the way %d", i, took, 2*cableDelay)
		}
	}
}
