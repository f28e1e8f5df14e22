// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A record that names an incarnation reaches that registration and no other, alone
// and in a run, even if another registration has taken over the key.
func TestIncarnation(t *testing.T) {
	table := mr.NewTable()
	executor := New(table)
	defer executor.Close()
	key := uint64(7)
	first := register(t, table, &key)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for _, n := range []int{1, 5} {
		if s := run(t, executor, n, key, first.Incarnation(), one); s != wire.StatusOK {
			t.Fatalf("%d operations on the region meant: %v", n, s)
		}
		if s := run(t, executor, n, key, first.Incarnation()+1, one); s != wire.StatusStale {
			t.Fatalf("%d operations on a region of another incarnation: %v, want stale", n, s)
		}
	}
	old := first.Incarnation()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := register(t, table, &key)
	if again.Incarnation() == old {
		t.Fatal("two registrations of one incarnation")
	}
	for _, n := range []int{1, 5} {
		if s := run(t, executor, n, key, old, one); s != wire.StatusStale {
			t.Fatalf("%d operations on a registration that is gone: %v, want stale", n, s)
		}
		if s := run(t, executor, n, key, 0, one); s != wire.StatusOK {
			t.Fatalf("%d operations on whichever region has the key: %v", n, s)
		}
	}
	if got := binary.LittleEndian.Uint64(again.Bytes()); got != 6 {
		t.Errorf("the word is %d, want 6", got)
	}
}

func register(t *testing.T, table *mr.Table, key *uint64) *mr.Region {
	t.Helper()
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	r, err := table.Register(m, mr.Options{Key: key, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// run executes n additions to the first word of a region and returns the first status.
func run(t *testing.T, m *Memory, n int, key uint64, incarnation uint32, operand []byte) wire.Status {
	t.Helper()
	var w wire.RecordWriter
	payload, resp := make([]byte, 1400), make([]byte, 1400)
	w.Reset(payload, len(resp))
	for range n {
		if !w.Append(&wire.Record{Verb: wire.VerbAtomic, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: key, Incarnation: incarnation, Operand: operand}) {
			t.Fatal("no room")
		}
	}
	defer m.Leave()
	if _, reason := m.Check(payload[:w.Len()], w.Ops()); reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	length, flags := m.Execute(resp, 0)
	var r wire.ResponseReader
	if reason := r.Reset(resp[:length], w.Ops(), flags); reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	status, _, _ := r.Next(0)
	return status
}
