// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// arrivals are those of a guest that reads when the test says so.
func arrivals(t *testing.T) (*Arrivals, *Segment) {
	t.Helper()
	segment, err := NewSegment(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	if err != nil {
		t.Fatal(err)
	}
	own, other, err := NewDoorbells()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = segment.Close(), own.Close(), other.Close() })
	return NewArrivals(segment, own, func(err error) { t.Error(err) }), segment
}

// Sessions without a message leave nothing behind while the guest does not read.
func TestSessionsLeaveNothing(t *testing.T) {
	a, _ := arrivals(t)
	for range 10 * MinArrivals / recordLen {
		a.NewInflow(1, &Credit{}, wire.Addr{}).Close()
	}
	if len(a.late) > 0 || a.written > 0 {
		t.Errorf("%d records are late and %d bytes written, want none", len(a.late), a.written)
	}
}

// The end of a session for which there was no room comes when the guest has read, also if
// nothing else comes after it.
func TestLateEndComes(t *testing.T) {
	a, segment := arrivals(t)
	in := a.NewInflow(1, &Credit{}, wire.Addr{}).(*inflow)
	in.told = true
	for e := a.Events(1); e.Take(); {
		e.Deliver(&engine.Event{})
	}
	if in.Close(); len(a.late) != 1 {
		t.Fatalf("%d records are late, want the end of the session", len(a.late))
	}
	segment.h.read.Store(a.written)
	if !a.Refused() || len(a.late) != 0 || segment.h.arrived.Load() != a.written {
		t.Errorf("%d records are late once the guest has read, %d of %d bytes shown", len(a.late),
			segment.h.arrived.Load(), a.written)
	}
}
