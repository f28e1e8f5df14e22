// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// narrow is a post, one of whose endpoints, 2, has few places for events.
type narrow struct {
	*post
	places int
	data   []uint64 // of the events that were delivered
}

func (n *narrow) Events(endpoint uint16) engine.Events {
	if endpoint == 2 {
		return (*narrowEvents)(n)
	}
	return nil
}

type narrowEvents narrow

func (n *narrowEvents) Take() bool {
	if n.places == 0 {
		return false
	}
	n.places--
	return true
}
func (n *narrowEvents) Return()                 { n.places++ }
func (n *narrowEvents) Deliver(e *engine.Event) { n.data = append(n.data, e.Data) }

// happen has so many events come to endpoint 2, and reports how many there was room for.
func (n *narrow) happen(first uint64, count int) int {
	to := n.host.Events(2)
	for i := range count {
		if !to.Take() {
			return i
		}
		to.Deliver(&engine.Event{Notice: wire.Notice{Data: first + uint64(i)}})
	}
	return count
}

func newNarrow(t *testing.T) *narrow {
	n := &narrow{post: newPost(t, 8, 0)}
	n.guest.Deliver(n)
	return n
}

// An event without a place waits, with all that comes after it for its endpoint. What
// comes for other endpoints does not.
func TestEventsWaitAlone(t *testing.T) {
	n := newNarrow(t)
	n.places = 1
	one, two := n.host.NewInflow(1, &n.credit, wire.Addr{}), n.host.NewInflow(2, &Credit{}, wire.Addr{})
	n.happen(1, 3)
	if n.offer(two, 7) || n.offer(one, 5) {
		t.Fatal("came unasked")
	}
	if n.read(); n.hear() != 1 || !n.offer(one, 5) || n.offer(two, 7) {
		t.Fatal("want one announcement answered, that of the endpoint for which nothing waits")
	}
	n.happen(4, 1)
	n.read()
	n.take(5)
	if !slices.Equal(n.data, []uint64{1}) {
		t.Errorf("events %v", n.data)
	}
	n.places = 2
	if n.read(); n.hear() != 1 || !slices.Equal(n.data, []uint64{1, 2, 3}) || !n.offer(two, 7) {
		t.Fatalf("events %v; then the message that was announced is answered for", n.data)
	}
	n.read()
	if err := n.queue.Post(&matching.Receive{Match: matching.Match{AnySource: true}, Buf: make([]byte, 7)}); err != nil || len(n.done) != 0 {
		t.Errorf("%v; a message has overtaken an event: %+v", err, n.done)
	}
	n.places = 1
	if n.read(); len(n.done) != 1 || n.done[0].Received != 7 {
		t.Errorf("%+v", n.done)
	}
	if !slices.Equal(n.data, []uint64{1, 2, 3, 4}) || n.guest.in.parked.bytes != 0 || len(n.guest.in.parked.of) != 0 {
		t.Errorf("events %v, %d bytes wait", n.data, n.guest.in.parked.bytes)
	}
}

// What waits is bounded: it fills the guest's memory up to the size of the ring, then the
// ring, and then its senders wait. Nothing is lost.
func TestEventsThatWaitAreBounded(t *testing.T) {
	n := newNarrow(t)
	ring := MinArrivals / recordLen
	sum := 0
	for range 4 {
		sum += n.happen(uint64(sum), ring)
		for range ring {
			n.read()
		}
	}
	if sum != 2*ring || n.guest.in.parked.bytes != MinArrivals {
		t.Errorf("%d events have come, and %d bytes wait; want %d and %d", sum, n.guest.in.parked.bytes, 2*ring, MinArrivals)
	}
	n.places = 2 * ring
	for range ring {
		n.read()
	}
	for i, data := range n.data {
		if data != uint64(i) {
			t.Fatalf("event %d has come as number %d", data, i)
		}
	}
	if len(n.data) != sum {
		t.Errorf("%d events, want %d", len(n.data), sum)
	}
}

// What waits outlives the host: messages come at once, as their sessions end, and events
// when they have places.
func TestEventsOutliveHost(t *testing.T) {
	n := newNarrow(t)
	in := n.host.NewInflow(2, &n.credit, wire.Addr{})
	n.offer(in, 5)
	n.read()
	n.hear()
	if n.happen(1, 2); !n.offer(in, 5) {
		t.Fatal("no room")
	}
	n.read()
	if err := n.guest.Lose(); err != nil {
		t.Fatal(err)
	}
	if u := n.queue.Usage(); u.Held != 1 || u.Leased != (matching.Room{}) || u.Inflows != 0 || len(n.data) != 0 {
		t.Errorf("%+v, events %v", u, n.data)
	}
	n.places = 2
	if n.read(); !slices.Equal(n.data, []uint64{1, 2}) || n.guest.in.parked.bytes != 0 {
		t.Errorf("events %v", n.data)
	}
}
