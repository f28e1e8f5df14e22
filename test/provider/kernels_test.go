// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// request is one call of a kernel; target, operand and compare have n elements each.
type request struct {
	form                     atomic.Func
	op                       atomic.Op
	dt                       atomic.Datatype
	n                        int
	away                     uint8 // bytes that the target is beyond a multiple of 32
	target, operand, compare []byte
	after                    []byte // what is expected of the target
}

func (r *request) String() string {
	return fmt.Sprintf("%v %v %v target %x operand %x compare %x", r.form, r.op, r.dt, r.target, r.operand, r.compare)
}

// replay has the kernels in C execute the requests, and compares their outcomes.
func replay(t *testing.T, program string, requests []request) {
	t.Helper()
	var in bytes.Buffer
	for _, r := range requests {
		in.Write([]byte{uint8(r.form), uint8(r.op), uint8(r.dt), r.away})
		in.Write(binary.LittleEndian.AppendUint32(nil, uint32(r.n)))
		for _, b := range [][]byte{r.target, r.operand, r.compare} {
			in.Write(append(b, make([]byte, r.n*r.dt.Size()-len(b))...))
		}
	}
	out := run(t, in.Bytes(), program, "run")
	for _, r := range requests {
		size := r.n * r.dt.Size()
		if len(out) < 2*size {
			t.Fatalf("the outcomes end before %v", &r)
		}
		after, result := out[:size], out[size:2*size]
		out = out[2*size:]
		if !same(r.dt, after, r.after) {
			t.Errorf("%v\nhas %x, want %x", &r, after, r.after)
		}
		if r.form != atomic.Base && !bytes.Equal(result, r.target) {
			t.Errorf("%v\nreturns %x, want the target", &r, result)
		}
	}
	if len(out) != 0 {
		t.Errorf("%d bytes behind the last outcome", len(out))
	}
}

// same compares the elements after an operation; any NaN is equal to any NaN.
func same(dt atomic.Datatype, a, b []byte) bool {
	part := dt.Size()
	if dt.Align() < part {
		part = dt.Align() // of a complex number
	}
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i += part {
		if x, y := a[i:i+part], b[i:i+part]; !bytes.Equal(x, y) && !(isNaN(dt, x) && isNaN(dt, y)) {
			return false
		}
	}
	return true
}

func isNaN(dt atomic.Datatype, b []byte) bool {
	var w [16]byte
	copy(w[:], b)
	bits := binary.LittleEndian.Uint64(w[:])
	switch dt {
	case atomic.Float, atomic.FloatComplex:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case atomic.Double, atomic.DoubleComplex:
		return math.IsNaN(math.Float64frombits(bits))
	case atomic.Float16:
		return bits&0x7fff > 0x7c00
	case atomic.BFloat16:
		return bits&0x7fff > 0x7f80
	case atomic.Float8E4M3:
		return bits&0x7f == 0x7f
	case atomic.Float8E5M2:
		return bits&0x7f > 0x7c
	case atomic.LongDouble, atomic.LongDoubleComplex:
		exp := binary.LittleEndian.Uint16(w[8:]) & 0x7fff
		return exp == 0x7fff && bits != 1<<63 || exp != 0 && bits>>63 == 0
	}
	return false
}

// vectors returns the golden vectors of package atomic: operations whose outcome was
// computed in C, with the expressions of fi_atomic(3).
func vectors(t *testing.T, name string) (all []request) {
	t.Helper()
	type vector struct {
		Func, Op, Dt       string
		N                  int
		Dst, Buf, Cmp, Out string
	}
	for _, v := range testnet.Golden[vector](t, "../../atomic/testdata/"+name) {
		r := request{n: v.N}
		var errs [7]error
		r.form, errs[0] = atomic.ParseFunc(v.Func)
		r.op, errs[1] = atomic.ParseOp(v.Op)
		r.dt, errs[2] = atomic.ParseDatatype(v.Dt)
		r.target, errs[3] = hex.DecodeString(v.Dst)
		r.operand, errs[4] = hex.DecodeString(v.Buf)
		r.compare, errs[5] = hex.DecodeString(v.Cmp)
		r.after, errs[6] = hex.DecodeString(v.Out)
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		if r.dt == atomic.LongDouble || r.dt == atomic.LongDoubleComplex {
			r.blankPadding()
		}
		all = append(all, r)
	}
	return all
}

// blankPadding takes the padding of long doubles out of a golden vector, where it counts
// for nothing: of a computed value it is zero here.
func (r *request) blankPadding() {
	for _, b := range [][]byte{r.target, r.operand, r.compare, r.after} {
		for i := range b {
			if i%16 >= 10 {
				b[i] = 0
			}
		}
	}
}

// differential returns operations for every triple, on elements at random and on those
// with few bits, and what package atomic makes of them.
func differential(t *testing.T, rng *rand.Rand) (all []request) {
	t.Helper()
	valid(func(form atomic.Func, op atomic.Op, dt atomic.Datatype) {
		for round := range 4 {
			r := request{form: form, op: op, dt: dt, n: 1 + rng.IntN(40)}
			if dt.Align() < dt.Size() && round%2 == 1 {
				r.away = uint8(dt.Align())
			}
			size := r.n * dt.Size()
			r.target, r.operand, r.compare = draw(rng, dt, size), draw(rng, dt, size), draw(rng, dt, size)
			for i := 0; i < size; i += dt.Size() {
				if rng.IntN(3) == 0 {
					copy(r.compare[i:i+dt.Size()], r.target[i:])
				}
			}
			r.after = append(make([]byte, 0, size+32), r.target...)
			result := make([]byte, size)
			if err := atomic.Apply(form, op, dt, r.after, r.operand, r.compare, result, r.n); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	})
	return all
}

// draw returns elements: half of them have bytes that are often all ones, all zeros or a
// sign, so that special values meet.
func draw(rng *rand.Rand, dt atomic.Datatype, size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += dt.Size() {
		special := rng.IntN(2) == 0
		for j := range dt.Size() {
			b[i+j] = byte(rng.Uint32())
			if special {
				b[i+j] = [...]byte{0, 0, 0, 0xff, 0x7f, 0x80, 0x3f, 0xc0, 1}[rng.IntN(9)]
			}
		}
	}
	return b
}

// valid calls f for every operation that libfabric has.
func valid(f func(atomic.Func, atomic.Op, atomic.Datatype)) {
	for form := range atomic.Func(atomic.NumFuncs) {
		for op := range atomic.Diff + 1 {
			for dt := range atomic.Datatype(atomic.NumDatatypes) {
				if atomic.Valid(form, op, dt) {
					f(form, op, dt)
				}
			}
		}
	}
}

// The kernels in C do as the golden vectors and as package atomic, for every form,
// operation and datatype.
func TestKernels(t *testing.T) {
	t.Parallel()
	program := build(t, sanitized, "kernels_test", "kernels.c")
	t.Run("list", func(t *testing.T) {
		var want strings.Builder
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			fmt.Fprintf(&want, "%d %d %d\n", dt, dt.Size(), dt.Align())
			valid(func(form atomic.Func, op atomic.Op, of atomic.Datatype) {
				if of == dt {
					fmt.Fprintf(&want, "%d %d %d\n", form, op, dt)
				}
			})
		}
		if got := run(t, nil, program, "list"); string(got) != want.String() {
			t.Errorf("the kernels are\n%s, want\n%s", got, &want)
		}
	})
	golden := vectors(t, "vectors.jsonl.gz")
	if len(golden) < 4950 {
		t.Fatalf("%d golden vectors, want at least 4950", len(golden))
	}
	random := differential(t, rand.New(rand.NewPCG(1, 2)))
	t.Run("golden", func(t *testing.T) { replay(t, program, golden) })
	t.Run("random", func(t *testing.T) { replay(t, program, random) })
	t.Run("environment", func(t *testing.T) { run(t, nil, program, "environment") })
	t.Run("readonly", func(t *testing.T) { run(t, nil, program, "readonly") })
	fast := build(t, optimised, "kernels_test", "kernels.c")
	t.Run("optimised", func(t *testing.T) {
		replay(t, fast, golden)
		replay(t, fast, random)
		replay(t, fast, vectors(t, "special.jsonl.gz"))
		run(t, nil, fast, "environment")
		run(t, nil, fast, "readonly")
		run(t, nil, fast, "threads")
	})
}

// Two threads add to elements of every size, and no addition is lost.
func TestKernelsOfTwoThreads(t *testing.T) {
	t.Parallel()
	program := build(t, threaded, "kernels_test", "kernels.c")
	t.Logf("%s", run(t, nil, program, "threads"))
}
