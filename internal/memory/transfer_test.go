// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// frame executes records and returns their statuses and values.
func frame(t *testing.T, m *Memory, records ...wire.Record) (statuses []wire.Status, values [][]byte) {
	t.Helper()
	var w wire.RecordWriter
	payload, resp := make([]byte, 1400), make([]byte, 1400)
	w.Reset(payload, len(resp))
	for i := range records {
		if !w.Append(&records[i]) {
			t.Fatalf("record %d does not fit", i)
		}
	}
	defer m.Leave()
	if _, reason := m.Check(payload[:w.Len()], w.Ops()); reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	n, flags := m.Execute(resp, 0)
	var r wire.ResponseReader
	if reason := r.Reset(resp[:n], w.Ops(), flags); reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	for i := range records {
		status, value, ok := r.Next(records[i].ResultLen())
		if !ok {
			t.Fatalf("no answer to record %d", i)
		}
		statuses, values = append(statuses, status), append(values, value)
	}
	return statuses, values
}

func remoteWrite(key, offset uint64, data []byte) wire.Record {
	return wire.Record{Verb: wire.VerbWrite, Op: wire.OpWrite, Datatype: wire.Byte, Key: key, Offset: offset, Count: uint32(len(data)), Operand: data}
}

func remoteRead(key, offset uint64, n int) wire.Record {
	return wire.Record{Verb: wire.VerbRead, Op: wire.OpRead, Datatype: wire.Byte, Key: key, Offset: offset, Count: uint32(n)}
}

func TestTransfers(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	key := uint64(7)
	r := register(t, table, &key)
	data := []byte("at an odd place, of an odd length")
	statuses, values := frame(t, m, remoteWrite(7, 1001, data), remoteRead(7, 1000, 40), remoteWrite(7, 1005, nil), remoteRead(7, 4096, 0), remoteRead(7, 4095, 1))
	if slices.Max(statuses) != wire.StatusOK {
		t.Fatalf("%v", statuses)
	}
	if want := append(append([]byte{0}, data...), make([]byte, 40-1-len(data))...); !bytes.Equal(values[1], want) || !bytes.Equal(r.Bytes()[1000:1040], want) {
		t.Errorf("read %q, memory has %q; want %q", values[1], r.Bytes()[1000:1040], want)
	}
	if reads, writes, in, out := m.Touched(); reads != 3 || writes != 2 || in != 40+0+1 || out != len(data) {
		t.Errorf("%d reads of %d bytes and %d writes of %d are counted, want 3 of 41 and 2 of %d", reads, in, writes, out, len(data))
	}
}

// A transfer is refused like an atomic: for itself, and for all that is to follow it.
func TestTransfersAreChecked(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	key := uint64(7)
	r := register(t, table, &key)
	mem := r.Memory()
	for k, access := range map[uint64]mr.Access{8: mr.RemoteRead, 9: mr.RemoteWrite} {
		if _, err := table.Register(mem, mr.Options{Key: &k, Access: access}); err != nil {
			t.Fatal(err)
		}
	}
	with := func(rec wire.Record, change func(*wire.Record)) wire.Record { change(&rec); return rec }
	data := []byte{1, 2, 3}
	for name, c := range map[string]struct {
		rec  wire.Record
		want wire.Status
	}{
		"no key":                 {remoteWrite(6, 0, data), wire.StatusNoKey},
		"no key, of nothing":     {remoteRead(6, 0, 0), wire.StatusNoKey},
		"not to be written":      {remoteWrite(8, 0, data), wire.StatusNoAccess},
		"nothing, likewise":      {remoteWrite(8, 0, nil), wire.StatusNoAccess},
		"not to be read":         {remoteRead(9, 0, 3), wire.StatusNoAccess},
		"beyond the end":         {remoteWrite(7, 4094, data), wire.StatusOutOfBounds},
		"read beyond the end":    {remoteRead(7, 4094, 3), wire.StatusOutOfBounds},
		"nothing beyond the end": {remoteRead(7, 4097, 0), wire.StatusOutOfBounds},
		"far beyond the end":     {remoteRead(7, 1<<64-2, 3), wire.StatusOutOfBounds},
		"what follows":           {with(remoteWrite(7, 4000, data), func(r *wire.Record) { r.Total = 97 }), wire.StatusOutOfBounds},
		"another registration":   {with(remoteRead(7, 0, 3), func(r *wire.Record) { r.Incarnation = 1 }), wire.StatusStale},
		"right":                  {with(remoteWrite(9, 4000, data), func(r *wire.Record) { r.Total = 96 }), wire.StatusOK},
	} {
		clear(r.Bytes())
		if statuses, _ := frame(t, m, c.rec); statuses[0] != c.want {
			t.Errorf("%s: %v, want %v", name, statuses[0], c.want)
		}
		if changed := !bytes.Equal(r.Bytes(), make([]byte, 4096)); changed != (c.want == wire.StatusOK) {
			t.Errorf("%s: memory has changed: %t", name, changed)
		}
		bytes := 0
		if c.want == wire.StatusOK {
			bytes = len(data)
		}
		if reads, writes, in, out := m.Touched(); reads+writes+in != 0 || out != bytes {
			t.Errorf("%s: counted as %d reads, %d writes, %d and %d bytes; want no operation of a part or a failure, and %d bytes written",
				name, reads, writes, in, out, bytes)
		}
	}
	m.Present(5)
	if statuses, _ := frame(t, m, remoteRead(7, 0, 1)); statuses[0] != wire.StatusNoAccess {
		t.Errorf("with an authorization key that the region does not have: %v", statuses[0])
	}
}

func TestTransfersDoNotAllocate(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	key := uint64(7)
	register(t, table, &key)
	var w wire.RecordWriter
	payload, resp := make([]byte, 1400), make([]byte, 1400)
	w.Reset(payload, len(resp))
	for _, rec := range []wire.Record{remoteWrite(7, 3, make([]byte, 1001)), remoteRead(7, 2000, 1111)} {
		if !w.Append(&rec) {
			t.Fatal("no room")
		}
	}
	one := func() {
		m.Check(payload[:w.Len()], w.Ops())
		if _, flags := m.Execute(resp, 0); flags != 0 {
			t.Fatal("refused")
		}
		m.Leave()
	}
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
