// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fits8 reports whether a record of one element has operands of 8 bytes in all, or none.
func fits8(rec *Record) bool {
	n := rec.Verb.operands(rec.Op) * ElemSize(rec.Datatype)
	return n == 0 || n == 8 && len(rec.Operand)+len(rec.Compare) == n
}

// Whatever is appended, by Append, Extend or Joined: a refusal leaves no trace, the
// reader returns exactly the accepted records, and the longest possible response fits.
func TestWriterKeepsAccount(t *testing.T) {
	for seed := range uint64(30000) {
		rng := rand.New(rand.NewPCG(seed, 77))
		size := rng.IntN(300)
		buf := bytes.Repeat([]byte{0xee}, size)
		room := rng.IntN(400)
		var w RecordWriter
		w.Reset(buf, room)
		var sent []Record
		bases := []Record{randomRecord(rng), randomRecord(rng), randomRecord(rng)}
		refused := 0
		for refused < 6 && len(sent) < 300 {
			rec := similar(rng, bases[rng.IntN(3)])
			if rng.IntN(3) == 0 {
				rec = bases[rng.IntN(3)]
			}
			if rng.IntN(20) == 0 && len(rec.Operand) > 0 {
				rec.Operand = rec.Operand[1:]
			}
			before, n, ops := bytes.Clone(buf[:w.Len()]), w.Len(), w.Ops()
			ok := false
			if rng.IntN(2) == 0 && len(sent) > 0 {
				last := sent[len(sent)-1]
				if last.Verb.Atomic() && last.Verb == rec.Verb && last.Op == rec.Op && last.Datatype == rec.Datatype && last.Key == rec.Key && last.Incarnation == rec.Incarnation && max(rec.Count, 1) == 1 && max(rec.Total, 1) == 1 && fits8(&rec) {
					var operand uint64
					if rec.Op != OpRead {
						operand = binary.LittleEndian.Uint64(append(bytes.Clone(rec.Operand), rec.Compare...))
					}
					if rng.IntN(2) == 0 {
						ok = w.Extend(rec.Offset, operand)
					} else if r := w.Room(operand); len(r) >= 4 && rec.Offset <= math.MaxUint32 {
						n := 1 + rng.IntN(min(9, len(r)/4))
						for i := range n {
							binary.LittleEndian.PutUint32(r[4*i:], uint32(rec.Offset))
						}
						w.Joined(uint32(n))
						sent = append(sent, slices.Repeat([]Record{rec}, n-1)...)
						ok = true
					}
				}
			}
			if !ok {
				ok = w.Append(&rec)
			}
			if ok {
				sent = append(sent, rec)
				continue
			}
			refused++
			if w.Len() != n || w.Ops() != ops || !bytes.Equal(before, buf[:n]) {
				t.Fatalf("seed %d: refusal changed something", seed)
			}
		}
		if w.Ops() != len(sent) || w.Ops() > MaxOps {
			t.Fatalf("seed %d ops", seed)
		}
		if w.Ops() == 0 {
			continue
		}
		if r := Validate(buf[:w.Len()], w.Ops()); r != ReasonOK {
			t.Fatalf("seed %d: %v", seed, r)
		}
		got := decode(t, buf[:w.Len()], w.Ops())
		for i := range sent {
			if !sameRecord(&got[i], &sent[i]) {
				t.Fatalf("seed %d, record %d: %+v, want %+v", seed, i, got[i], sent[i])
			}
		}
		for try := range 4 {
			var rw ResponseWriter
			rw.Reset(make([]byte, room), len(got))
			for i := range got {
				if try == 0 || try > 1 && rng.IntN(2) == 0 {
					rw.AppendStatus(i, StatusNoKey)
				} else if n := got[i].ResultLen(); n > 0 {
					if rw.AppendValue(i, n) == nil {
						t.Fatalf("seed %d: value %d does not fit", seed, i)
					}
				}
			}
			if n, _ := rw.Finish(); n < 0 {
				t.Fatalf("seed %d: response does not fit", seed)
			}
		}
	}
}

// The checksum by our own instructions is that of hash/crc32, at any length and
// alignment, by each method that the CPU has instructions for.
func TestNativeChecksum(t *testing.T) {
	if !native {
		t.Skip("the CPU lacks the instructions")
	}
	defer func(was uint8) { method = was }(method)
	rng, fastest := rand.New(rand.NewPCG(1, 77)), method
	lengths := []int{8999, 3 * 248 * 40, 9954, 9953, MaxFrame - 1, MaxFrame}
	for n := MinFrame; n < 4100; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		big := make([]byte, n+8)
		for i := range big {
			big[i] = byte(rng.Uint32())
		}
		f := big[n%8:][:n]
		native = false
		want := Checksum(f)
		native = true
		for method = range fastest + 1 {
			if got := Checksum(f); got != want {
				t.Fatalf("%d bytes, method %d: %#x, want %#x", n, method, got, want)
			}
		}
	}
}
