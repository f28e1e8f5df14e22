// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// vector is a line of testdata/vectors.jsonl.gz, n elements computed in C with
// the expressions of fi_atomic(3). Bytes are little-endian hex. special.jsonl.gz and
// bounded.jsonl.gz have the same format, see special.c and bounded.c.
type vector struct {
	Func, Op, Dt            string
	N                       int
	Dst, Buf, Cmp, Out, Res string

	line                    int
	f                       Func
	op                      Op
	dt                      Datatype
	dst, buf, cmp, out, res []byte
}

// readVectors fails the test if there are fewer than atLeast lines.
func readVectors(t *testing.T, name string, atLeast int) []vector {
	t.Helper()
	var all []vector
	for dec := json.NewDecoder(bytes.NewReader(unpack(t, name))); dec.More(); {
		v := vector{line: len(all) + 1}
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("line %d: %v", v.line, err)
		}
		v.parse(t)
		all = append(all, v)
	}
	if len(all) < atLeast {
		t.Fatalf("%d vectors in %s; want at least %d", len(all), name, atLeast)
	}
	return all
}

// unpack returns what is in a compressed file of testdata.
func unpack(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
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
	for _, v := range readVectors(t, "vectors.jsonl.gz", 4950) {
		v.check(t)
	}
}

// TestSpecialValues: all pairs of infinities, zeros, NaNs and extreme values as
// factors of complex products, and of every kind of encoding as long doubles.
func TestSpecialValues(t *testing.T) {
	for _, v := range readVectors(t, "special.jsonl.gz", 17) {
		v.check(t)
	}
}

func (v *vector) check(t *testing.T) {
	t.Helper()
	target, operand, compare, result := buffers(v.dt, v.N)
	copy(target, v.dst)
	copy(operand, v.buf)
	copy(compare, v.cmp)
	if err := Apply(v.f, v.op, v.dt, target, operand, compare, result, v.N); err != nil {
		t.Errorf("line %d: %v %v %v: %v", v.line, v.f, v.op, v.dt, err)
		return
	}
	if v.f != Base && (!bytes.Equal(result, v.dst) || !sameValues(v.dt, result, v.res)) {
		t.Errorf("line %d: %v %v %v: result %x; target was %x, want %x", v.line, v.f, v.op, v.dt, result, v.dst, v.res)
	}
	for size, i := v.dt.Size(), 0; i < len(target); i += size {
		if !sameValues(v.dt, target[i:i+size], v.out[i:i+size]) {
			t.Errorf("line %d: %v %v %v: dst %x buf %x cmp %x gives %x; want %x", v.line, v.f, v.op, v.dt,
				v.dst[i:i+size], operand[i:i+size], compare[i:i+size], target[i:i+size], v.out[i:i+size])
		}
	}
}

// TestBoundedVectors: sums and differences with a bound, saturating ones, and sums of
// fields, for all triples of special values and some random ones.
func TestBoundedVectors(t *testing.T) {
	for _, v := range readVectors(t, "bounded.jsonl.gz", 70) {
		v.check(t)
	}
}

// TestBoundedVectorsAreTheOracles: the committed vectors are those of the C program.
func TestBoundedVectorsAreTheOracles(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil || strconv.IntSize != 64 {
		t.Skipf("needs a C compiler for 64 bits: %v", err)
	}
	program := filepath.Join(t.TempDir(), "bounded")
	if out, err := exec.Command(cc, "-O1", "-o", program, "testdata/bounded.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := unpack(t, "bounded.jsonl.gz"); !bytes.Equal(got, want) {
		t.Errorf("bounded.jsonl.gz has %d bytes, which are not the %d of bounded.c: make it again", len(got), len(want))
	}
}

// TestVectorsCoverEverything: for the datatypes that the vectors know, every
// valid triple occurs.
func TestVectorsCoverEverything(t *testing.T) {
	var seen [NumFuncs][NumOps][NumDatatypes]int
	for _, v := range slices.Concat(readVectors(t, "vectors.jsonl.gz", 4950), readVectors(t, "bounded.jsonl.gz", 70)) {
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
		exp := uint(b[9]&0x7f)<<8 | uint(b[8])
		return exp == 0x7fff && bits != 1<<63 || exp != 0 && bits>>63 == 0
	}
	return false
}
