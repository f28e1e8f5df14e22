// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A sweep has the same effect as the kernel on each of the elements.
func TestSweepsAgreeWithKernels(t *testing.T) {
	found := 0
	for op := range Op(NumOps) {
		for dt := range Datatype(NumDatatypes) {
			for _, form := range []Func{Base, Fetch} {
				sweep := SweepOf(form, op, dt)
				if sweep == nil {
					continue
				}
				found++
				rng := rand.New(rand.NewPCG(uint64(op), uint64(dt)))
				size := dt.Size()
				mem := make([]byte, 64*size)
				for i := range mem {
					mem[i] = byte(rng.Uint32())
				}
				model, operand := bytes.Clone(mem), mem[5*size:][:size:size]
				operand = bytes.Clone(operand)
				var at []uint32
				var result, want []byte
				for range 1000 {
					offset := rng.IntN(64) * size
					at = append(at, uint32(offset))
					var old []byte
					if form == Fetch {
						old = make([]byte, size)
					}
					KernelOf(form, op, dt)(model[offset:offset+size], operand, nil, old)
					want = append(want, old...)
				}
				if form == Fetch {
					result = make([]byte, len(want))
				}
				sweep(mem, at, operand, result)
				if !bytes.Equal(mem, model) || !bytes.Equal(result, want) {
					t.Errorf("%v %v %v: not what the kernel does", form, op, dt)
				}
			}
		}
	}
	if found == 0 {
		t.Fatal("no sweeps")
	}
	if SweepOf(Compare, Sum, Uint64) != nil || SweepOf(Base, NumOps, Uint64) != nil || SweepOf(Base, Sum, NumDatatypes) != nil {
		t.Error("a sweep for what has none")
	}
}

func TestSweepPanicsOutOfBounds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for an offset behind the memory")
		}
	}()
	SweepOf(Base, Sum, Uint64)(make([]byte, 64), []uint32{60}, make([]byte, 8), nil)
}

func TestTouch(t *testing.T) {
	mem := make([]byte, 64)
	Touch(mem, []uint32{0, 60, 63})
	Touch(mem, nil)
	defer func() {
		if recover() == nil {
			t.Error("no panic for an offset behind the memory")
		}
	}()
	Touch(mem[:63], []uint32{60})
}

// Random words, most of which are in no cache: one by one, and touched before.
func BenchmarkSweepFar(b *testing.B) {
	mem, operand, result := make([]byte, 1<<28), []byte{1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 182*8)
	rng := rand.New(rand.NewPCG(1, 2))
	frames := make([][]uint32, 2000)
	for f := range frames {
		for range 182 {
			frames[f] = append(frames[f], uint32(rng.IntN(len(mem)/8)*8))
		}
	}
	sweep := SweepOf(Fetch, Sum, Uint64)
	for _, touch := range []bool{false, true} {
		b.Run(map[bool]string{false: "plain", true: "touched"}[touch], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				f := frames[i%len(frames)]
				if touch {
					Touch(mem, f)
				}
				sweep(mem, f, operand, result)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/182, "ns/element")
		})
	}
}

func BenchmarkSweep(b *testing.B) {
	mem, operand, result := make([]byte, 4096), []byte{1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 182*8)
	var at []uint32
	for i := range 182 {
		at = append(at, uint32(i*8))
	}
	sweep := SweepOf(Fetch, Sum, Uint64)
	b.ReportAllocs()
	for b.Loop() {
		sweep(mem, at, operand, result)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/182, "ns/element")
}
