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

// streaming sends requests of a full frame through a window.
func streaming(t *testing.T, window, requests int, delay int64) (s stream) {
	t.Helper()
	w := lab(plan{nodes: 4, delay: delay, downlink: tenGigabit, session: session.Config{Window: window}})
	w.plan.tick = 200
	from := w.nodes[1] // it knows what there is to know, and so does node 3
	newFlow(t, w, 1, 3, wire.VerbAtomic, 1, 1, 1).finish(t)
	f := newFlow(t, w, 1, 3, wire.VerbAtomic, frameWords, 200, requests)
	w.net.drop = func(_, to *node, packet []byte) bool {
		if h, ok := isRequest(packet); ok {
			s.requests++
			if h.Flags&wire.FlagDelay != 0 {
				s.marked++
			}
		} else if to == from {
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
	s := streaming(t, 64, requests, 3*cableDelay)
	t.Logf("%+v: %.2f requests an ack, %d ns a request", s, float64(s.requests)/float64(s.acks), s.took/requests)
	if s.requests != requests || s.acks > requests/7 || s.acks < requests/10 {
		t.Errorf("%d acks for %d requests, want one for about eight", s.acks, s.requests)
	}
	const line = 1227 // ns for a frame with its headers
	if s.took > requests*line*11/10 {
		t.Errorf("%d requests took %d ns, and the line %d", requests, s.took, requests*line)
	}
}

// A window of four is never shut for want of an ack.
func TestSmallWindowGetsAcks(t *testing.T) {
	const requests = 400
	s := streaming(t, 4, requests, cableDelay)
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
