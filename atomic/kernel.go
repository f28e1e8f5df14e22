// SPDX-License-Identifier: Apache-2.0

package atomic

import "math"

// Kernel applies one operation to whole elements, each atomically, in ascending
// order. It is the inner loop of an executor: it checks nothing, because the
// caller has checked ([Apply] does).
//
// The caller guarantees: len(target) is a multiple of the element size and
// target is aligned to [Datatype.Align]; operand, and compare for a [Compare]
// kernel, hold as many bytes as target, at any alignment; result does so too, or
// is empty, as it is for [Base]. compare is empty for the other functions, and
// operand may be empty for [Read]. result may be the same memory as operand or
// compare. A slice that is too short, but not empty, panics like any slice
// access; a misaligned target loses atomicity or faults.
//
// A kernel never allocates and never blocks, but for the spin locks of elements
// that the CPU cannot exchange (package comment).
type Kernel func(target, operand, compare, result []byte)

// table is filled by package initialisation and only read afterwards.
var table [NumFuncs][NumOps][NumDatatypes]Kernel

// KernelOf returns the kernel for a triple, or nil when it is not [Valid].
func KernelOf(f Func, op Op, dt Datatype) Kernel {
	if f >= NumFuncs || op >= NumOps || dt >= NumDatatypes {
		return nil
	}
	return table[f][op][dt]
}

func init() {
	bindInteger[int8](Int8)
	bindInteger[uint8](Uint8)
	bindInteger[int16](Int16)
	bindInteger[uint16](Uint16)
	bindInteger[int32](Int32)
	bindInteger[uint32](Uint32)
	bindInteger[int64](Int64)
	bindInteger[uint64](Uint64)
	bindInt128(Int128, int128Algebra, word128{hi: 1 << 63}, word128{lo: math.MaxUint64, hi: math.MaxInt64})
	bindInt128(Uint128, uint128Algebra, word128{}, word128{lo: math.MaxUint64, hi: math.MaxUint64})

	bind(Float, floatAlgebra)
	bind(Double, doubleAlgebra)
	bind(LongDouble, longDoubleAlgebra)
	bind(Float16, smallAlgebra[uint16](&binary16))
	bind(BFloat16, smallAlgebra[uint16](&bfloat16))
	bind(Float8E4M3, smallAlgebra[uint8](&e4m3))
	bind(Float8E5M2, smallAlgebra[uint8](&e5m2))

	bind(FloatComplex, complexAlgebra(floatAlgebra, floatParts))
	bind(DoubleComplex, complexAlgebra(doubleAlgebra, doubleParts))
	bind(LongDoubleComplex, complexAlgebra(longDoubleAlgebra, longDoubleParts))

	// These come last: they replace the general loops of the most important
	// integers.
	bindHot[int32](Int32)
	bindHot[uint32](Uint32)
	bindHot[int64](Int64)
	bindHot[uint64](Uint64)
}

// set enters k for every function that op is valid with.
func set(op Op, dt Datatype, k Kernel) {
	for f := range Func(NumFuncs) {
		if Valid(f, op, dt) {
			table[f][op][dt] = k
		}
	}
}

// conditions tell whether a conditional operation stores, by target element, operand and
// comparand.
var conditions [NumOps][NumDatatypes]func(t, b, c []byte) bool

func setCondition[N comparable](op Op, dt Datatype, when func(t, b, c N) bool) {
	conditions[op][dt] = func(t, b, c []byte) bool { return when(get[N](t, 0), get[N](b, 0), get[N](c, 0)) }
}

// Applied reports whether an operation that has run stored its value. It takes the value
// from before, the operand and the comparand of one element: [Cswap] to [CswapGT],
// [SumAtMost] and [DiffAtLeast] depend on them, and all other operations always store. It
// returns true as well if the operation is not [Valid] for [Compare] and the datatype.
func Applied(op Op, dt Datatype, before, operand, compare []byte) bool {
	if op >= NumOps || dt >= NumDatatypes || conditions[op][dt] == nil {
		return true
	}
	return conditions[op][dt](before, operand, compare)
}

// update computes the new value of a target element t from operand b and
// comparand c. It must be pure: a lost race calls it again. Returning t means
// "leave the memory alone".
type update[N any] func(t, b, c N) N

// loop makes the general kernel of an update: load, compute, compare-and-swap
// per element. N is the element's bit pattern, not its value, so that equality
// in the loop is equality of bits.
//
// It must not be inlined itself, see [bindHot].
//
//go:noinline
func loop[N comparable](f update[N]) Kernel {
	return func(target, operand, compare, result []byte) {
		size := sizeOf[N]()
		for i := 0; i+size <= len(target); i += size {
			var b, c N
			if len(operand) != 0 {
				b = get[N](operand, i)
			}
			if len(compare) != 0 {
				c = get[N](compare, i)
			}
			old := apply(at(target, i), b, c, f)
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}
