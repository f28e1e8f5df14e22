// SPDX-License-Identifier: Apache-2.0

package atomic

import "math/bits"

// machineInt are the integers that Go computes with directly.
type machineInt interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

func bindInteger[T machineInt](dt Datatype) {
	a := algebra[T]{
		add:   func(a, b T) T { return a + b },
		sub:   func(a, b T) T { return a - b },
		mul:   func(a, b T) T { return a * b },
		less:  func(a, b T) bool { return a < b },
		equal: func(a, b T) bool { return a == b },
		truth: func(a T) bool { return a != 0 },
		one:   1,
	}
	bind(dt, a)
	w := bitwise[T]{
		or:  func(a, b T) T { return a | b },
		and: func(a, b T) T { return a & b },
		xor: func(a, b T) T { return a ^ b },
	}
	bindBitwise(dt, w)
	bindFields(dt, a.add, w)
	lowest, highest := T(0), ^T(0)
	if highest < 0 { // all bits are -1
		lowest = T(1) << (8*sizeOf[T]() - 1)
		highest = ^lowest
	}
	bindBounded(dt, bounded[T]{algebra: a, min: lowest, max: highest})
}

// bindInt128 enters the kernels of a datatype of 128 bits.
func bindInt128(dt Datatype, a algebra[word128], lowest, highest word128) {
	bind(dt, a)
	bindBitwise(dt, bitwise128)
	bindFields(dt, a.add, bitwise128)
	bindBounded(dt, bounded[word128]{algebra: a, min: lowest, max: highest})
}

// word128 is 16 bytes of memory on a little-endian machine: a 128-bit integer,
// signed or not, or the container of a long double.
type word128 struct{ lo, hi uint64 }

// Sum, difference and product modulo 2^128 are the same for both signednesses.
var uint128Algebra = algebra[word128]{
	add:   add128,
	sub:   sub128,
	mul:   mul128,
	less:  lessUint128,
	equal: func(a, b word128) bool { return a == b },
	truth: func(a word128) bool { return a != word128{} },
	one:   word128{lo: 1},
}

var int128Algebra = func() algebra[word128] {
	a := uint128Algebra
	a.less = lessInt128
	return a
}()

var bitwise128 = bitwise[word128]{
	or:  func(a, b word128) word128 { return word128{a.lo | b.lo, a.hi | b.hi} },
	and: func(a, b word128) word128 { return word128{a.lo & b.lo, a.hi & b.hi} },
	xor: func(a, b word128) word128 { return word128{a.lo ^ b.lo, a.hi ^ b.hi} },
}

func add128(a, b word128) word128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return word128{lo, hi}
}

func sub128(a, b word128) word128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return word128{lo, hi}
}

func mul128(a, b word128) word128 {
	hi, lo := bits.Mul64(a.lo, b.lo)
	return word128{lo, hi + a.lo*b.hi + a.hi*b.lo}
}

func lessUint128(a, b word128) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

func lessInt128(a, b word128) bool {
	return int64(a.hi) < int64(b.hi) || a.hi == b.hi && a.lo < b.lo
}
