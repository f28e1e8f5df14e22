// SPDX-License-Identifier: Apache-2.0

package atomic

// algebra holds the functions of a datatype from which all operations follow. N
// is the bit pattern of an element. less is nil where there is no order.
type algebra[N comparable] struct {
	add, sub, mul func(a, b N) N
	less, equal   func(a, b N) bool
	truth         func(a N) bool // C's notion: a != 0, so true for NaN
	one           N              // the value that logical operations store for true
}

// bind derives the arithmetic, logical and compare kernels of dt from its
// algebra. Greater-or-equal is not "not less": both fail on a NaN.
func bind[N comparable](dt Datatype, a algebra[N]) {
	logical := func(v bool) (n N) {
		if v {
			n = a.one
		}
		return n
	}
	set(Sum, dt, loop(func(t, b, _ N) N { return a.add(t, b) }))
	set(Diff, dt, loop(func(t, b, _ N) N { return a.sub(t, b) }))
	set(Prod, dt, loop(func(t, b, _ N) N { return a.mul(t, b) }))
	set(Lor, dt, loop(func(t, b, _ N) N { return logical(a.truth(t) || a.truth(b)) }))
	set(Land, dt, loop(func(t, b, _ N) N { return logical(a.truth(t) && a.truth(b)) }))
	set(Lxor, dt, loop(func(t, b, _ N) N { return logical(a.truth(t) != a.truth(b)) }))
	set(Read, dt, loop(func(t, _, _ N) N { return t }))
	set(Write, dt, loop(func(_, b, _ N) N { return b }))
	swap := func(op Op, when func(c, t N) bool) {
		set(op, dt, loop(func(t, b, c N) N {
			if when(c, t) {
				return b
			}
			return t
		}))
		setCondition(op, dt, func(t, _, c N) bool { return when(c, t) })
	}
	swap(Cswap, a.equal)
	swap(CswapNE, func(c, t N) bool { return !a.equal(c, t) })
	if a.less == nil {
		return
	}
	set(Min, dt, loop(func(t, b, _ N) N {
		if a.less(b, t) {
			return b
		}
		return t
	}))
	set(Max, dt, loop(func(t, b, _ N) N {
		if a.less(t, b) {
			return b
		}
		return t
	}))
	swap(CswapLT, a.less)
	swap(CswapLE, func(c, t N) bool { return a.less(c, t) || a.equal(c, t) })
	swap(CswapGT, func(c, t N) bool { return a.less(t, c) })
	swap(CswapGE, func(c, t N) bool { return a.less(t, c) || a.equal(c, t) })
}

// bitwise is the algebra of bits, for integers only.
type bitwise[N comparable] struct {
	or, and, xor func(a, b N) N
}

// bindBitwise derives the bitwise kernels of dt. The masked swap is written
// t ^ ((t ^ b) & c), which needs no complement.
func bindBitwise[N comparable](dt Datatype, w bitwise[N]) {
	set(Bor, dt, loop(func(t, b, _ N) N { return w.or(t, b) }))
	set(Band, dt, loop(func(t, b, _ N) N { return w.and(t, b) }))
	set(Bxor, dt, loop(func(t, b, _ N) N { return w.xor(t, b) }))
	set(Mswap, dt, loop(func(t, b, c N) N { return w.xor(t, w.and(w.xor(t, b), c)) }))
}
