// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// vector is a line of testdata/vectors.jsonl.gz: a case computed in C with the
// expressions of fi_atomic(3). Bytes are little-endian hex.
type vector struct {
	Func, Op, Dt                 string
	N                            int
	Dst, Buf, Cmp, Out, Res      string
	dst, buf, cmp, out, res      []byte
	f                            Func
	op                           Op
	dt                           Datatype
	line                         int
	target, operand, cmpArg, got []byte
}

const minVectors = 4950

func readVectors(t *testing.T) []vector {
	t.Helper()
	file, err := os.Open("testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for dec := json.NewDecoder(z); dec.More(); {
		v := vector{line: len(all) + 1}
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("line %d: %v", v.line, err)
		}
		v.parse(t)
		all = append(all, v)
	}
	if len(all) < minVectors {
		t.Fatalf("%d vectors; expected at least %d", len(all), minVectors)
	}
	return all
}

func (v *vector) parse(t *testing.T) {
	t.Helper()
	var errs [8]error
	v.f, errs[0] = ParseFunc(v.Func)
	v.op, errs[1] = ParseOp(v.Op)
	v.dt, errs[2] = ParseDatatype(v.Dt)
	v.dst, errs[3] = hex.DecodeString(v.Dst)
	v.buf, errs[4] = hex.DecodeString(v.Buf)
	v.cmp, errs[5] = hex.DecodeString(v.Cmp)
	v.out, errs[6] = hex.DecodeString(v.Out)
	v.res, errs[7] = hex.DecodeString(v.Res)
	for _, err := range errs {
		if err != nil {
			t.Fatalf("line %d: %v", v.line, err)
		}
	}
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		target, operand, compare, result := buffers(v.dt, v.N)
		copy(target, v.dst)
		if copy(operand, v.buf) == 0 {
			operand = nil
		}
		if copy(compare, v.cmp) == 0 {
			compare = nil
		}
		if v.f == Base {
			result = nil
		}
		if err := Apply(v.f, v.op, v.dt, target, operand, compare, result, v.N); err != nil {
			t.Errorf("line %d: %v %v %v: %v", v.line, v.f, v.op, v.dt, err)
			continue
		}
		if !sameValues(v.dt, target, v.out) {
			t.Errorf("line %d: %v %v %v: dst %x buf %x cmp %x\n got %x\nwant %x", v.line, v.f, v.op, v.dt, v.dst, v.buf, v.cmp, target, v.out)
		}
		if v.f != Base && !bytes.Equal(result, v.dst) {
			t.Errorf("line %d: %v %v %v: result %x, target was %x", v.line, v.f, v.op, v.dt, result, v.dst)
		}
		if v.f != Base && !sameValues(v.dt, result, v.res) {
			t.Errorf("line %d: %v %v %v: result %x, expected %x", v.line, v.f, v.op, v.dt, result, v.res)
		}
	}
}

// TestVectorsCoverEverything: for the datatypes that the vectors know, every
// valid triple occurs.
func TestVectorsCoverEverything(t *testing.T) {
	var seen [NumFuncs][NumOps][NumDatatypes]int
	for _, v := range readVectors(t) {
		seen[v.f][v.op][v.dt]++
	}
	triples(func(f Func, op Op, dt Datatype) {
		switch {
		case dt == Float8E4M3 || dt == Float8E5M2: // exhaustive tests of their own
		case f == Fetch && op == Read && dt == BFloat16: // see TestReadIsACopy
		case seen[f][op][dt] == 0:
			t.Errorf("no vector for %v %v %v", f, op, dt)
		}
	})
}

// sameValues compares arrays of dt: any NaN equals any NaN, and padding of long
// double does not count.
func sameValues(dt Datatype, a, b []byte) bool {
	part := map[Datatype]int{FloatComplex: 4, DoubleComplex: 8, LongDoubleComplex: 16}[dt]
	if part == 0 {
		part = dt.Size()
	}
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i += part {
		x, y := a[i:i+part], b[i:i+part]
		if dt == LongDouble || dt == LongDoubleComplex {
			x, y = x[:10], y[:10]
		}
		if !bytes.Equal(x, y) && !(isNaN(dt, x) && isNaN(dt, y)) {
			return false
		}
	}
	return true
}

// isNaN decides on the bytes, without the code under test.
func isNaN(dt Datatype, b []byte) bool {
	var bits uint64
	for i := range min(8, len(b)) {
		bits |= uint64(b[i]) << (8 * i)
	}
	switch dt {
	case Float, FloatComplex:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case Double, DoubleComplex:
		return math.IsNaN(math.Float64frombits(bits))
	case Float16:
		return bits&0x7fff > 0x7c00
	case BFloat16:
		return bits&0x7fff > 0x7f80
	case Float8E4M3:
		return bits&0x7f == 0x7f
	case Float8E5M2:
		return bits&0x7f > 0x7c
	case LongDouble, LongDoubleComplex:
		return b[8] == 0xff && b[9]&0x7f == 0x7f && bits != 1<<63
	}
	return false
}
