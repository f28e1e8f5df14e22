// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A session that was frozen, because a later one has told what ran in it, does not begin
// anew in the XDP program: its late frames run nowhere.
func TestFrozenSessionStaysOrdinary(t *testing.T) {
	table, key := mr.NewTable(), uint64(7)
	words, err := mr.Memfd("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	region, err := table.Register(words, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	local := memory.New(table)
	defer func() {
		local.Close()
		if err := region.Close(); err != nil {
			t.Error(err)
		}
		if err := words.Close(); err != nil {
			t.Error(err)
		}
	}()
	x, err := executor.New(local, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &residence.Residence{}
	h.Keys.Store(&map[uint64]struct{}{key: {}})
	begin := func() *residence.Migratable { // without a server, it cannot move
		s := x.Begin(1, session.TargetParams{Local: wire.NewSessionID(0, 0, 1, 1), Remote: 9, Epoch: 7, MaxFrame: 1500, Window: 64}, nil)
		m := &residence.Migratable{Served: s, Ordinary: s, H: h}
		t.Cleanup(m.Release)
		return m
	}
	m := begin()

	m.Freeze(1, m.Acked())
	var w wire.RecordWriter
	buf := make([]byte, 1400)
	w.Reset(buf, len(buf))
	one := binary.LittleEndian.AppendUint64(nil, 1)
	if !w.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 1, Total: 1, Key: key, Operand: one}) {
		t.Fatal("the record does not fit")
	}
	payload := buf[:w.Len()]
	if !h.Executes(payload, w.Ops()) {
		t.Fatal("the program could not execute the frame anyway")
	}
	first := session.FirstPSN(7)
	out := m.Receive(2, &wire.Header{Type: wire.Request, PSN: first, Ack: first - 1, Ops: uint8(w.Ops())}, payload, make([]byte, 1500))
	if n := binary.LittleEndian.Uint64(words.Bytes()); out.Verdict == session.Execute || n != 0 {
		t.Errorf("verdict %v, and the word is %d: want it not to run", out.Verdict, n)
	}
	state, err := m.State(3) // another process goes on with it
	again := begin()
	if err := errors.Join(err, again.Restore(state, 3)); err != nil || !again.Stays {
		t.Errorf("restored: %v, stays %t", err, again.Stays)
	}
	if state, err = json.Marshal(residence.HandedState{wire.ResetClosed}); err != nil {
		t.Fatal(err)
	}
	if err := begin().Ordinary.Restore(state, 3); err == nil {
		t.Error("a session that the program has was restored by the executor in Go")
	}
}

// A guest chooses numbers of endpoints as it likes: no sum of them overflows.
func TestPickBlockBounds(t *testing.T) {
	var n node.Numbers
	for _, c := range []struct{ number, length int }{{math.MaxInt - 3, 10}, {math.MaxInt, math.MaxInt}, {1, math.MaxInt}, {65530, 10}, {-5, 2}, {3, 0}, {3, -4}, {math.MinInt, 8}} {
		if b, err := n.Reserve(c.number, c.length); err == nil {
			t.Errorf("%d numbers from %d on: %v, want an error", c.length, c.number, *b)
		}
	}
}
