// SPDX-License-Identifier: Apache-2.0

package atomic

// bounded is the algebra of integers that do not wrap around.
type bounded[N comparable] struct {
	algebra[N]
	zero     N
	min, max N // the limits of the datatype
}

// sum returns t + b modulo the size of N, and whether that is the exact sum.
func (a *bounded[N]) sum(t, b N) (s N, exact bool) {
	s = a.add(t, b)
	if a.less(b, a.zero) {
		return s, a.less(s, t)
	}
	return s, !a.less(s, t)
}

// difference returns t - b modulo the size of N, and whether that is the exact
// difference.
func (a *bounded[N]) difference(t, b N) (d N, exact bool) {
	d = a.sub(t, b)
	if a.less(b, a.zero) {
		return d, a.less(t, d)
	}
	return d, !a.less(t, d)
}

// limit returns the limit of the datatype in a direction.
func (a *bounded[N]) limit(down bool) N {
	if down {
		return a.min
	}
	return a.max
}

// bindBounded derives the conditional and saturating kernels of dt.
func bindBounded[N comparable](dt Datatype, a bounded[N]) {
	setIf(SumAtMost, dt, func(t, b, c N) (N, bool) {
		s, exact := a.sum(t, b)
		return s, exact && !a.less(c, s)
	})
	setIf(DiffAtLeast, dt, func(t, b, c N) (N, bool) {
		d, exact := a.difference(t, b)
		return d, exact && !a.less(d, c)
	})
	set(SumSat, dt, loop(func(t, b, _ N) N {
		s, exact := a.sum(t, b)
		if !exact {
			return a.limit(a.less(b, a.zero))
		}
		return s
	}))
	set(DiffSat, dt, loop(func(t, b, _ N) N {
		d, exact := a.difference(t, b)
		if !exact {
			return a.limit(!a.less(b, a.zero))
		}
		return d
	}))
}

// setIf enters the kernel and the condition of an operation that computes the new value
// and whether to store it.
func setIf[N comparable](op Op, dt Datatype, f func(t, b, c N) (N, bool)) {
	set(op, dt, loop(func(t, b, c N) N {
		if n, stored := f(t, b, c); stored {
			return n
		}
		return t
	}))
	setCondition(op, dt, func(t, b, c N) bool {
		_, stored := f(t, b, c)
		return stored
	})
}

// bindFields derives the masked sum of dt. The bits below each bit of c are summed with
// that bit cleared, so that it takes their carry; then it gets its own sum, without
// carry.
func bindFields[N comparable](dt Datatype, add func(a, b N) N, w bitwise[N]) {
	set(Msum, dt, loop(func(t, b, c N) N {
		below := add(w.xor(t, w.and(t, c)), w.xor(b, w.and(b, c)))
		return w.xor(below, w.and(w.xor(t, b), c))
	}))
}
