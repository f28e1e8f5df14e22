// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// result is the outcome of one record: a failure, or a value of n bytes.
type result struct {
	status Status
	value  []byte
}

// putResults writes a response and returns its payload, as it would arrive, and flags.
func putResults(t *testing.T, results []result, room int) ([]byte, uint8) {
	t.Helper()
	buf := bytes.Repeat([]byte{0xee}, room)
	var w ResponseWriter
	w.Reset(buf, len(results))
	for i, res := range results {
		if res.status != StatusOK {
			w.AppendStatus(i, res.status)
		} else if res.value != nil {
			v := w.AppendValue(i, len(res.value))
			if v == nil {
				t.Fatalf("value %d of %d bytes does not fit into %d", i, len(res.value), room)
			}
			copy(v, res.value)
		}
	}
	n, flags := w.Finish()
	if n < 0 {
		t.Fatalf("the statuses do not fit into %d bytes", room)
	}
	return buf[:n], flags
}

// checkResults reads a response back.
func checkResults(t *testing.T, payload []byte, flags uint8, results []result) {
	t.Helper()
	var r ResponseReader
	if reason := r.Reset(payload, len(results), flags); reason != ReasonOK {
		t.Fatalf("status list: %v", reason)
	}
	for i, res := range results {
		s, v, ok := r.Next(len(res.value))
		if !ok || s != res.status {
			t.Fatalf("record %d of %d: %v, %v, want %v (%v)", i, len(results), s, ok, res.status, r.Finish())
		}
		if s == StatusOK && !bytes.Equal(v, res.value) {
			t.Fatalf("record %d: value % x, want % x", i, v, res.value)
		}
	}
	if reason := r.Finish(); reason != ReasonOK {
		t.Fatalf("finish: %v", reason)
	}
	if _, _, ok := r.Next(0); ok {
		t.Fatal("a record after the last")
	}
}

func TestResponseRoundTrip(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		results := make([]result, 1+rng.IntN(MaxOps))
		worst := statusHead
		for i := range results {
			res := &results[i]
			switch rng.IntN(4) {
			case 0:
				res.status = 1 + Status(rng.IntN(int(NumStatuses)-1))
				res.value = pattern(rng.IntN(5)) // what it would have been
			case 1, 2:
				res.value = pattern(1 + rng.IntN(40))
			}
			worst += max(pad4(len(res.value)), statusEntry)
		}
		payload, flags := putResults(t, results, worst) // the room that RecordWriter would have kept
		checkResults(t, payload, flags, results)
	}
}

func TestResponseLayout(t *testing.T) {
	payload, flags := putResults(t, []result{{value: []byte{1}}, {status: StatusNoKey}, {value: word}, {}}, 64)
	want := []byte{1, 0, 1, 1, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	if !bytes.Equal(payload, want) || flags != FlagStatus {
		t.Errorf("% x, flags %d, want % x", payload, flags, want)
	}
	payload, flags = putResults(t, []result{{value: word}, {value: word}}, 64)
	if !bytes.Equal(payload, append(bytes.Clone(word), word...)) || flags != 0 {
		t.Errorf("all well: % x, flags %d", payload, flags)
	}
}

// TestResponseRoom: a value that would leave no room for later failures is refused, never
// a status.
func TestResponseRoom(t *testing.T) {
	var w ResponseWriter
	w.Reset(make([]byte, 16), 4) // after the first value, three failures take 10 bytes, so 8 do not go
	if w.AppendValue(0, 8) != nil {
		t.Fatal("a value took the room of statuses")
	}
	if !w.Empty() {
		t.Fatal("a refused value left a trace")
	}
	if w.AppendValue(0, 4) == nil {
		t.Fatal("a value that fits was refused")
	}
	for i := 1; i < 4; i++ {
		w.AppendStatus(i, StatusBadCount)
	}
	if n, flags := w.Finish(); n != 12 || flags != FlagStatus {
		t.Fatalf("%d bytes, flags %d, want 12, %d", n, flags, FlagStatus)
	}
	w.Reset(make([]byte, 3), 1)
	w.AppendStatus(0, StatusNoKey)
	if n, _ := w.Finish(); n != -1 {
		t.Fatalf("a status fits into 3 bytes: %d", n)
	}
	if w.AppendValue(0, -1) != nil || w.AppendValue(0, int(^uint(0)>>1)) != nil {
		t.Fatal("an impossible length was granted")
	}
}

// TestResponseFitsRequest: whatever a RecordWriter packs, the longest possible
// response fits, for every set of failures.
func TestResponseFitsRequest(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		room := MinMTU - HeaderLen + rng.IntN(1300)
		var w RecordWriter
		w.Reset(make([]byte, room), room)
		for rec := randomRecord(rng); w.Append(&rec); rec = randomRecord(rng) {
		}
		recs := decode(t, w.buf[:w.Len()], w.Ops())
		results := make([]result, len(recs))
		for i := range recs {
			if rng.IntN(3) == 0 {
				results[i].status = StatusNotExecuted
			} else if n := recs[i].ResultLen(); n > 0 {
				results[i].value = pattern(n)
			}
		}
		payload, flags := putResults(t, results, room)
		checkResults(t, payload, flags, results)
	}
}

func TestResponseRefuses(t *testing.T) {
	list := func(b ...byte) []byte { return b }
	tests := []struct {
		name    string
		payload []byte
		ops     int
		flags   uint8
		lens    []int
		want    Reason
	}{
		{"good", list(1, 0, 0, 1), 1, FlagStatus, []int{8}, ReasonOK},
		{"empty list", list(0, 0, 0, 0), 1, FlagStatus, nil, ReasonBadOps},
		{"list too long", list(2, 0, 0, 1, 1, 1, 0, 0), 1, FlagStatus, nil, ReasonBadOps},
		{"no list", list(1), 1, FlagStatus, nil, ReasonTruncated},
		{"list cut", list(2, 0, 0, 1, 1, 1), 2, FlagStatus, nil, ReasonTruncated},
		{"status ok", list(1, 0, 0, 0), 1, FlagStatus, nil, ReasonBadPayload},
		{"status unknown", list(1, 0, 0, 11), 1, FlagStatus, nil, ReasonBadPayload},
		{"index out of range", list(1, 0, 1, 1), 1, FlagStatus, nil, ReasonBadPayload},
		{"index twice", list(2, 0, 0, 1, 0, 1, 0, 0), 2, FlagStatus, nil, ReasonBadPayload},
		{"index descending", list(2, 0, 1, 1, 0, 1, 0, 0), 2, FlagStatus, nil, ReasonBadPayload},
		{"list padding", list(2, 0, 0, 1, 1, 1, 0, 1), 2, FlagStatus, nil, ReasonBadPadding},
		{"value missing", nil, 1, 0, []int{8}, ReasonTruncated},
		{"value cut", list(1, 0, 0), 1, 0, []int{1}, ReasonTruncated},
		{"value padding", list(1, 1, 0, 0), 1, 0, []int{1}, ReasonBadPadding},
		{"trailing", list(1, 0, 0, 0, 0, 0, 0, 0), 1, 0, []int{4}, ReasonTrailing},
		{"records unread", list(1, 0, 0, 0), 2, 0, []int{4}, ReasonBadOps},
		{"padded frame", make([]byte, minPayload), 1, 0, []int{0}, ReasonOK},
		{"padding not zero", append(make([]byte, minPayload-1), 1), 1, 0, []int{8}, ReasonBadPadding},
		{"negative length", make([]byte, 8), 1, 0, []int{-1}, ReasonTruncated},
	}
	for _, tt := range tests {
		var r ResponseReader
		r.Reset(tt.payload, tt.ops, tt.flags)
		for _, n := range tt.lens {
			r.Next(n)
		}
		if got := r.Finish(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestResponseAllocs(t *testing.T) {
	buf := make([]byte, 1400)
	var w ResponseWriter
	if n := testing.AllocsPerRun(100, func() { respond(&w, buf, 60) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// respond writes and reads a response of ops 8-byte values, the second record failing.
func respond(w *ResponseWriter, buf []byte, ops int) (sum byte) {
	w.Reset(buf, ops)
	for i := range ops {
		if i == 1 {
			w.AppendStatus(i, StatusNoKey)
		} else {
			binary.LittleEndian.PutUint64(w.AppendValue(i, 8), uint64(i))
		}
	}
	n, flags := w.Finish()
	var r ResponseReader
	r.Reset(buf[:n], ops, flags)
	for {
		s, v, ok := r.Next(8)
		if !ok {
			return sum
		}
		if s == StatusOK {
			sum += v[0]
		}
	}
}

func FuzzResponse(f *testing.F) {
	f.Add([]byte{1, 0, 0, 1}, uint8(1), FlagStatus, []byte{8})
	f.Add([]byte{2, 0, 0, 1, 1, 1, 0, 0, 1, 2, 3, 4}, uint8(3), FlagStatus, []byte{8, 8, 3})
	f.Add(word, uint8(1), uint8(0), []byte{8})
	f.Add([]byte{}, uint8(0), uint8(0), []byte{})
	f.Fuzz(func(t *testing.T, payload []byte, ops, flags uint8, lens []byte) {
		var r ResponseReader
		r.Reset(payload, int(ops), flags)
		var results []result
		for i := range int(ops) {
			n := 0
			if i < len(lens) {
				n = int(lens[i])
			}
			s, v, ok := r.Next(n)
			if !ok {
				break
			}
			if s == StatusOK && len(v) != n {
				t.Fatalf("value of %d bytes, want %d", len(v), n)
			}
			results = append(results, result{s, v})
		}
		if r.Finish() != ReasonOK || len(results) == 0 {
			return
		}
		// There is room for the worst case; the payload itself may be shorter, as its
		// outcome is known.
		room := len(payload) + statusHead + statusEntry*MaxOps
		again, f := putResults(t, results, room)
		if !bytes.HasPrefix(payload, again) || f != flags&FlagStatus {
			t.Fatalf("% x, flags %d, encodes again as % x, flags %d", payload, flags, again, f)
		}
	})
}

func BenchmarkResponse(b *testing.B) {
	const ops = 91
	buf := make([]byte, 1400)
	var w ResponseWriter
	b.ReportAllocs()
	for b.Loop() {
		respond(&w, buf, ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ops), "ns/record")
}
