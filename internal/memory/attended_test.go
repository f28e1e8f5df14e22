// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// elsewhere executes the operations of a frame one by one in another memory, as the
// program does that has it.
type elsewhere struct {
	m    *Memory
	recs []wire.Record
	next int
}

func (x *elsewhere) Next() (wire.Status, []byte) {
	rec := &x.recs[x.next]
	x.next++
	result := make([]byte, rec.Verb.ResultLen(rec.Datatype, rec.Count))
	if s := x.m.Apply(rec, 0, result); s != wire.StatusOK {
		return s, nil
	}
	return wire.StatusOK, result
}

// flatten returns the operations in memory of a payload, each with its own bytes.
func flatten(payload []byte, ops int) (all []wire.Record) {
	var r wire.RecordReader
	var rec wire.Record
	for r.Reset(payload, ops); r.Next(&rec); {
		for i := range rec.Ops() {
			rec.Element(i)
			one := rec
			one.Operand, one.Compare = bytes.Clone(rec.Operand), bytes.Clone(rec.Compare)
			all = append(all, one)
		}
	}
	return all
}

// A frame that is executed elsewhere has the answer that it has here, bit for bit, and is
// counted likewise; also if operations of it fail.
func TestElsewhereIsAsHere(t *testing.T) {
	key := uint64(5)
	newMemory := func() (*Memory, []byte) {
		table := mr.NewTable()
		mem, err := mr.Alloc(4096, mr.AllocOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Register(mem, mr.Options{Key: &key, Length: 256, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
			t.Fatal(err)
		}
		for i := range mem.Bytes()[:256] {
			mem.Bytes()[i] = byte(i)
		}
		m := New(table)
		t.Cleanup(m.Close)
		return m, mem.Bytes()[:256]
	}
	here, bytesHere := newMemory()
	there, bytesThere := newMemory()
	host := New(mr.NewTable())
	t.Cleanup(host.Close)
	var w wire.RecordWriter
	buf := make([]byte, 1400)
	w.Reset(buf, 1400)
	word := binary.LittleEndian.AppendUint64(nil, 9)
	add := func(rec wire.Record) {
		t.Helper()
		if rec.Total = rec.Count; !w.Append(&rec) {
			t.Fatalf("no room for %+v", rec)
		}
	}
	op := func(verb wire.Verb, offset uint64) wire.Record {
		return wire.Record{Verb: verb, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 1, Key: key, Offset: offset, Operand: word}
	}
	for i := range uint64(40) { // a run
		add(op(wire.VerbFetch, i*8))
	}
	add(op(wire.VerbAtomic, 3)) // misaligned
	add(wire.Record{Verb: wire.VerbRead, Op: wire.OpRead, Datatype: wire.Byte, Count: 77, Key: key, Offset: 1})
	add(wire.Record{Verb: wire.VerbWrite, Op: wire.OpWrite, Datatype: wire.Byte, Count: 5, Key: key, Offset: 33, Operand: []byte("hello")})
	swap := op(wire.VerbCompare, 64)
	swap.Op, swap.Datatype, swap.Operand, swap.Compare = uint8(atomic.Cswap), uint8(atomic.Uint128), make([]byte, 16), bytes.Clone(bytesHere[64:80])
	add(swap)
	unknown := op(wire.VerbFetch, 0)
	unknown.Key = 99
	add(unknown)
	payload, ops := buf[:w.Len()], w.Ops()

	respHere, respHost := make([]byte, 1400), make([]byte, 1400)
	check := func(m *Memory) {
		if _, reason := m.Check(payload, ops); reason != wire.ReasonOK {
			t.Fatal(reason)
		}
	}
	check(here)
	if !here.Foreign(1400) { // key 99
		t.Error("a frame with an unknown key is not foreign")
	}
	check(here)
	nHere, saidHere := here.Execute(respHere, 3)
	here.Leave()
	check(host)
	if !host.Foreign(1400) || host.Foreign(100) {
		t.Error("foreign are frames of unknown keys, if their answers fit")
	}
	check(host)
	nHost, saidHost := host.Answer(respHost, 3, &elsewhere{m: there, recs: flatten(payload, ops)})
	host.Leave()
	there.Leave()
	if nHere != nHost || saidHere != saidHost || !bytes.Equal(respHere[:nHere], respHost[:nHost]) {
		t.Errorf("answers of %d and %d bytes, flags %x and %x\n%x\n%x", nHere, nHost, saidHere, saidHost, respHere[:nHere], respHost[:nHost])
	}
	if !bytes.Equal(bytesHere, bytesThere) {
		t.Error("memory differs")
	}
	a, b, c, d := here.Touched()
	e, f, g, h := host.Touched()
	if [4]int{a, b, c, d} != [4]int{e, f, g, h} || here.Streak() != host.Streak() {
		t.Errorf("touched %d %d %d %d, streak %d; elsewhere %d %d %d %d, streak %d", a, b, c, d, here.Streak(), e, f, g, h, host.Streak())
	}
}
