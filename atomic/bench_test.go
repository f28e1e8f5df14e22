// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// BenchmarkBareAddUint64 is the yardstick for one fetch-add kernel call.
func BenchmarkBareAddUint64(b *testing.B) {
	b.ReportAllocs()
	var x uint64
	for b.Loop() {
		atomic.AddUint64(&x, 1)
	}
}

// BenchmarkBareAddUint64x4096 is the yardstick for a base sum of an array.
func BenchmarkBareAddUint64x4096(b *testing.B) {
	b.ReportAllocs()
	x, y := make([]uint64, 4096), make([]uint64, 4096)
	b.SetBytes(8 * 4096)
	for b.Loop() {
		for i := range x {
			atomic.AddUint64(&x[i], y[i])
		}
	}
}

// BenchmarkKernel measures one call for some triples and counts.
func BenchmarkKernel(b *testing.B) {
	for _, c := range []struct {
		f  Func
		op Op
		dt Datatype
		n  int
	}{
		{Fetch, Sum, Uint64, 1}, {Base, Sum, Uint64, 1}, {Fetch, Read, Uint64, 1}, {Base, Write, Uint64, 1},
		{Fetch, Bor, Uint64, 1}, {Fetch, Bxor, Uint64, 1}, {Fetch, Min, Int64, 1}, {Fetch, Max, Int32, 1},
		{Compare, Cswap, Uint64, 1}, {Compare, Mswap, Uint64, 1}, {Base, Sum, Uint64, 4096}, {Base, Bor, Uint64, 4096}, {Fetch, Sum, Uint64, 4096},
		{Fetch, Sum, Uint8, 1}, {Fetch, Sum, Uint16, 1}, {Fetch, Sum, Float, 1}, {Fetch, Sum, Double, 1},
		{Fetch, Prod, FloatComplex, 1}, {Fetch, Sum, DoubleComplex, 1}, {Fetch, Sum, LongDouble, 1},
		{Fetch, Prod, LongDouble, 1}, {Fetch, Prod, LongDoubleComplex, 1}, {Fetch, Sum, Uint128, 1},
		{Fetch, Read, Uint128, 1}, {Compare, Cswap, Uint128, 1}, {Fetch, Sum, Float16, 1},
		{Fetch, Sum, Float8E4M3, 1}, {Compare, SumAtMost, Uint64, 1}, {Compare, DiffAtLeast, Int32, 1},
		{Fetch, SumSat, Uint64, 1}, {Compare, Msum, Uint64, 1}, {Compare, SumAtMost, Uint128, 1},
	} {
		b.Run(fmt.Sprintf("%v/%v/%v/%d", c.f, c.op, c.dt, c.n), func(b *testing.B) {
			target, operand, compare, result := buffers(c.dt, c.n)
			if c.f == Base {
				result = nil
			}
			k := KernelOf(c.f, c.op, c.dt)
			b.ReportAllocs()
			b.SetBytes(int64(len(target)))
			for b.Loop() {
				k(target, operand, compare, result)
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	target, operand, compare, result := buffers(Uint64, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := Apply(Fetch, Sum, Uint64, target, operand, compare, result, 1); err != nil {
			b.Fatal(err)
		}
	}
}
