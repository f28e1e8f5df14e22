// SPDX-License-Identifier: Apache-2.0

package atomic

// pair is a C complex number: real part first. S is the bit pattern of a part.
type pair[S comparable] struct{ re, im S }

// parts holds the functions on the bits of its parts that complex
// multiplication needs beyond their algebra.
type parts[S comparable] struct {
	isNaN, isInf func(S) bool
	copySign     func(mag, sign S) S
	inf          S
}

// complexAlgebra builds the algebra of pairs from that of the parts. There is no
// order. A complex number is true when either part is, so also with a NaN part.
func complexAlgebra[S comparable](a algebra[S], p parts[S]) algebra[pair[S]] {
	return algebra[pair[S]]{
		add:   func(x, y pair[S]) pair[S] { return pair[S]{a.add(x.re, y.re), a.add(x.im, y.im)} },
		sub:   func(x, y pair[S]) pair[S] { return pair[S]{a.sub(x.re, y.re), a.sub(x.im, y.im)} },
		mul:   func(x, y pair[S]) pair[S] { return complexMul(&a, &p, x, y) },
		equal: func(x, y pair[S]) bool { return a.equal(x.re, y.re) && a.equal(x.im, y.im) },
		truth: func(x pair[S]) bool { return a.truth(x.re) || a.truth(x.im) },
		one:   pair[S]{re: a.one},
	}
}

// complexMul multiplies as C does (C11 Annex G.5.1, the __mulsc3 family): the
// textbook formula, and when that yields NaN in both parts although a factor or
// an intermediate product is infinite, the infinity is recovered.
func complexMul[S comparable](a *algebra[S], p *parts[S], x, y pair[S]) pair[S] {
	ac, bd := a.mul(x.re, y.re), a.mul(x.im, y.im)
	ad, bc := a.mul(x.re, y.im), a.mul(x.im, y.re)
	z := pair[S]{a.sub(ac, bd), a.add(ad, bc)}
	if !p.isNaN(z.re) || !p.isNaN(z.im) {
		return z
	}
	redo := false
	if p.isInf(x.re) || p.isInf(x.im) {
		x, y = p.box(x, a.one), p.zeroNaN(y)
		redo = true
	}
	if p.isInf(y.re) || p.isInf(y.im) {
		y, x = p.box(y, a.one), p.zeroNaN(x)
		redo = true
	}
	if !redo && (p.isInf(ac) || p.isInf(bd) || p.isInf(ad) || p.isInf(bc)) {
		x, y = p.zeroNaN(x), p.zeroNaN(y)
		redo = true
	}
	if !redo {
		return z
	}
	return pair[S]{
		a.mul(p.inf, a.sub(a.mul(x.re, y.re), a.mul(x.im, y.im))),
		a.mul(p.inf, a.add(a.mul(x.re, y.im), a.mul(x.im, y.re))),
	}
}

// box reduces an infinite number to its direction: infinite parts become one,
// finite ones zero, with their signs.
func (p *parts[S]) box(x pair[S], one S) pair[S] {
	unit := func(s S) S {
		var mag S
		if p.isInf(s) {
			mag = one
		}
		return p.copySign(mag, s)
	}
	return pair[S]{unit(x.re), unit(x.im)}
}

// zeroNaN replaces NaN parts by zeros of the same sign.
func (p *parts[S]) zeroNaN(x pair[S]) pair[S] {
	zero := func(s S) S {
		if !p.isNaN(s) {
			return s
		}
		var z S
		return p.copySign(z, s)
	}
	return pair[S]{zero(x.re), zero(x.im)}
}
