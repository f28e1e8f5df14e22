// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// TestTableGrows fills a table beyond the indexes that it began with: each session has an
// id of its own, and is found by it. Sessions of a larger table find their places in it,
// and then there is room for none until as many have gone.
func TestTableGrows(t *testing.T) {
	const most = 2*firstIndexes + 7
	var tab table
	tab.init(0, 3, most, rand.Uint64)
	all := map[wire.SessionID]entry{}
	for tab.left() > 0 {
		x := &conn{}
		if !tab.add(x) {
			t.Fatalf("no room for session %d of %d", len(all)+1, most)
		}
		all[x.slot.id] = x
	}
	if len(all) != most || tab.add(&conn{}) {
		t.Fatalf("%d sessions with ids of their own, or one more: want %d", len(all), most)
	}
	for id, x := range all {
		if tab.find(id) != x {
			t.Fatalf("%#x: another session, or none", id)
		}
	}
	far := &conn{}
	if !tab.place(far, wire.NewSessionID(0, 3, most+100, 1)) || tab.find(far.slot.id) != far {
		t.Fatal("a session of a larger table has no place")
	}
	if tab.place(&conn{}, far.slot.id) || tab.place(&conn{}, wire.NewSessionID(0, 4, most+200, 1)) {
		t.Error("a place that is taken, or of another queue, was given away")
	}
	tab.settle()
	tab.remove(far)
	if tab.add(&conn{}) {
		t.Fatal("room for more than there may be")
	}
	for _, x := range all {
		tab.remove(x)
		break
	}
	if !tab.add(&conn{}) || tab.add(&conn{}) {
		t.Error("no room for the session that took the place of another, or room for two")
	}
}
