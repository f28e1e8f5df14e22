// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Sessions without a message leave nothing behind while the guest does not read.
func TestSessionsLeaveNothing(t *testing.T) {
	segment, err := NewSegment(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	own, other, err := NewDoorbells()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	defer other.Close()
	a := NewArrivals(segment, own, func(err error) { t.Error(err) })
	for range 10 * MinArrivals / recordLen {
		a.NewInflow(1, &Credit{}, wire.Addr{}).Close()
	}
	if len(a.late) > 0 || a.written > 0 {
		t.Errorf("%d records are late and %d bytes written, want none", len(a.late), a.written)
	}
}
