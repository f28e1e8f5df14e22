// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// request sends the next request, with a payload.
func (w *twin) request(payload []byte, ops int) {
	w.t.Helper()
	s := w.state()
	b := make([]byte, MaxFrame+wire.MinFrame)
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: uint8(ops)}
	h.Put(b)
	w.send(b[:wire.Seal(b, wire.HeaderLen+copy(b[wire.HeaderLen:], payload))])
}

// Results that have just room in the answer, or just not, behind each other and in a run.
func TestTightRoom(t *testing.T) {
	for frame := 1496; frame <= 1500; frame++ {
		w := newTwin(t, setting{kind: wire.Ethernet, frame: frame})
		for count := uint32(100); count < 130; count++ {
			for _, op := range []atomic.Op{atomic.Read, atomic.Bor} {
				for _, last := range []uint64{8, 4096} { // which fails
					var rw wire.RecordWriter
					b := make([]byte, MaxFrame)
					rw.Reset(b, 2*MaxFrame)
					rec := wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint32), Key: twinRegions[0].key, Count: count}
					rw.Append(&rec)
					rec.Op, rec.Count = uint8(op), 1
					if op != atomic.Read {
						rec.Operand = make([]byte, 4)
					}
					for rw.Ops() < 254 {
						rw.Append(&rec)
					}
					rec.Offset = last
					rw.Append(&rec)
					w.request(b[:rw.Len()], rw.Ops())
				}
			}
		}
	}
}

// Payloads that no sender makes.
func TestOddPayloads(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	le := binary.LittleEndian
	head := func(flags uint8, op atomic.Op) []byte {
		b := []byte{byte(wire.VerbFetch), byte(op), byte(atomic.Uint64), flags}
		return le.AppendUint64(b, twinRegions[0].key)
	}
	run := func(n uint32, stride int, op atomic.Op, flags uint8, real int) []byte {
		b := le.AppendUint32(head(wire.RecordKey|wire.RecordRun|flags, op), n)
		return append(b, make([]byte, real*stride)...)
	}
	before := w.state().Frames
	for name, c := range map[string]struct {
		payload []byte
		ops     int
		runs    bool
	}{
		"run":                    {run(2, 12, atomic.Sum, 0, 2), 2, true},
		"run of reads":           {run(3, 4, atomic.Read, 0, 3), 3, true},
		"run of one":             {run(1, 12, atomic.Sum, 0, 1), 1, false},
		"run of none":            {run(0, 12, atomic.Sum, 0, 0), 1, false},
		"run that is cut":        {run(2, 12, atomic.Sum, 0, 1), 2, false},
		"run of too many":        {run(3, 12, atomic.Sum, 0, 3), 2, false},
		"run of 2^32-1":          {run(1<<32-1, 12, atomic.Sum, 0, 3), 3, false},
		"run without an operand": {run(2, 0, atomic.Sum, wire.RecordShared, 0), 2, false},
		"head alone":             {head(wire.RecordKey, atomic.Sum), 1, false},
		"no key":                 {make([]byte, 16), 1, false},
		"count of none":          {append(head(wire.RecordKey|wire.RecordCount, atomic.Read), make([]byte, 8)...), 1, false},
		"huge count":             {append(head(wire.RecordKey|wire.RecordCount, atomic.Read), 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff), 1, true},
		"huge total":             {append(head(wire.RecordKey|wire.RecordTotal, atomic.Read), 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff), 1, true},
		"huge offset":            {append(head(wire.RecordKey|wire.RecordOff64, atomic.Read), 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 1, true},
	} {
		w.request(c.payload, c.ops)
		after := w.state().Frames
		if ran := after != before; ran != c.runs {
			t.Errorf("%s: ran: %t, want %t", name, ran, c.runs)
		}
		before = after
	}
}

// An operation whose memory has gone between the look at its key and its execution is not
// executed, and says so.
func TestMemoryGone(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	var r executorRegion
	if err := w.x.objects.Regions.Lookup(twinRegions[0].key, &r); err != nil {
		t.Fatal(err)
	}
	if err := w.x.objects.Memories.Delete(r.Place); err != nil {
		t.Fatal(err)
	}
	var rw wire.RecordWriter
	b := make([]byte, wire.HeaderLen+1400)
	rw.Reset(b[wire.HeaderLen:], 1400)
	for i := range 4 { // of another region, and of this one
		rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint64), Key: twinRegions[i%2].key, Count: 3})
	}
	s := w.state()
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: uint8(rw.Ops())}
	h.Put(b)
	action, packet := w.run(b[:wire.Seal(b, wire.HeaderLen+rw.Len())])
	frame, reason := wire.Strip(packet, wire.MAC{2, 0, 0, 0, 0, 1}, false)
	if action != xdpTX || reason != wire.ReasonOK {
		t.Fatalf("the program returns %d, %v", action, reason)
	}
	h, payload, reason := wire.Parse(frame)
	var rr wire.ResponseReader
	if reason != wire.ReasonOK || rr.Reset(payload, int(h.Ops), h.Flags) != wire.ReasonOK {
		t.Fatalf("%v: %+v %x", reason, h, payload)
	}
	for i := range 4 {
		want := []wire.Status{wire.StatusNotExecuted, wire.StatusOK}[i%2]
		status, value, ok := rr.Next(24)
		if !ok || status != want || status == wire.StatusOK && string(value) != string(w.words[1][:24]) {
			t.Errorf("operation %d: %v %x, want %v", i, status, value, want)
		}
	}
	if rr.Finish() != wire.ReasonOK {
		t.Error(rr.Finish())
	}
}
