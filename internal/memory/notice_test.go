// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// noticed runs a frame of additions to one word, of which the i-th is bad if the i-th
// letter is not a full stop, and of a notice that covers so many records.
func noticed(t *testing.T, m *Memory, key uint64, adds string, covers, streak uint32) (ok bool, status wire.Status) {
	t.Helper()
	var w wire.RecordWriter
	payload, resp := make([]byte, 1400), make([]byte, 1400)
	w.Reset(payload, len(resp))
	for i, c := range adds {
		rec := wire.Record{Verb: wire.VerbAtomic, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: key, Operand: make([]byte, 8)}
		if rec.Operand[0] = byte(i); c != '.' {
			rec.Offset = 1 << 20
		}
		w.Append(&rec)
	}
	if !w.Notice(&wire.Notice{Data: 77, Covers: covers}) {
		t.Fatal("no room")
	}
	if uses, reason := m.Check(payload[:w.Len()], w.Ops()); uses != wire.FeatureNotices || reason != wire.ReasonOK {
		t.Fatalf("uses %#x, %v", uses, reason)
	}
	n, flags := m.Execute(resp, streak)
	m.Leave()
	var r wire.ResponseReader
	if reason := r.Reset(resp[:n], w.Ops(), flags); reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	for range w.Ops() {
		status, _, _ = r.Next(0)
	}
	notice, ok := m.Notice()
	if ok && notice.Data != 77 {
		t.Errorf("the data are %d, want 77", notice.Data)
	}
	return ok, status
}

// A notice succeeds if the records that it covers did, in its frame and in earlier ones.
func TestNotice(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	key := uint64(7)
	register(t, table, &key)
	for _, c := range []struct {
		adds           string
		covers, streak uint32
		want           bool
		after          uint32 // the streak
	}{
		{"", 0, 0, true, 1},
		{"", 1, 0, false, 0},
		{"", 300, 299, false, 0},
		{"", 300, 300, true, 301},
		{".", 1, 0, true, 2},
		{".", 2, 0, false, 0},
		{".", 2, 1, true, 3},
		{"..x.", 1, 50, true, 2},
		{"..x.", 2, 50, false, 0},
		{"..x", 0, 50, true, 1},
		{"..x", 1, 50, false, 0},
		{"x...x...", 3, 0, true, 4},
		{"x...x...", 4, 0, false, 0},
		{"..", math.MaxUint32, math.MaxUint32, true, math.MaxUint32},
	} {
		ok, status := noticed(t, m, key, c.adds, c.covers, c.streak)
		if ok != c.want || (status == wire.StatusOK) != c.want || m.Streak() != c.after {
			t.Errorf("%+v: %t, status %v, streak %d", c, ok, status, m.Streak())
		}
	}
	if ok, status := noticed(t, m, key, ".", 2, 0); ok || status != wire.StatusNotExecuted {
		t.Errorf("%t, %v", ok, status)
	}
}
