// SPDX-License-Identifier: Apache-2.0

package atomic

import "math"

// floatAlgebra works on the bit patterns of float32. Every operation is a
// function of its own that ends in a conversion to bits, so the compiler can
// never fuse a product and a sum into one rounding.
var floatAlgebra = algebra[uint32]{
	add:   func(a, b uint32) uint32 { return math.Float32bits(f32(a) + f32(b)) },
	sub:   func(a, b uint32) uint32 { return math.Float32bits(f32(a) - f32(b)) },
	mul:   func(a, b uint32) uint32 { return math.Float32bits(f32(a) * f32(b)) },
	less:  func(a, b uint32) bool { return f32(a) < f32(b) },
	equal: func(a, b uint32) bool { return f32(a) == f32(b) },
	truth: func(a uint32) bool { return f32(a) != 0 },
	one:   math.Float32bits(1),
}

var floatParts = parts[uint32]{
	isNaN:    func(a uint32) bool { return f32(a) != f32(a) },
	isInf:    func(a uint32) bool { return a&^(1<<31) == 0xff<<23 },
	copySign: func(mag, sign uint32) uint32 { return mag&^(1<<31) | sign&(1<<31) },
	inf:      0xff << 23,
}

func f32(a uint32) float32 { return math.Float32frombits(a) }

// doubleAlgebra is floatAlgebra for float64.
var doubleAlgebra = algebra[uint64]{
	add:   func(a, b uint64) uint64 { return math.Float64bits(f64(a) + f64(b)) },
	sub:   func(a, b uint64) uint64 { return math.Float64bits(f64(a) - f64(b)) },
	mul:   func(a, b uint64) uint64 { return math.Float64bits(f64(a) * f64(b)) },
	less:  func(a, b uint64) bool { return f64(a) < f64(b) },
	equal: func(a, b uint64) bool { return f64(a) == f64(b) },
	truth: func(a uint64) bool { return f64(a) != 0 },
	one:   math.Float64bits(1),
}

var doubleParts = parts[uint64]{
	isNaN:    func(a uint64) bool { return f64(a) != f64(a) },
	isInf:    func(a uint64) bool { return a&^(1<<63) == 0x7ff<<52 },
	copySign: func(mag, sign uint64) uint64 { return mag&^(1<<63) | sign&(1<<63) },
	inf:      0x7ff << 52,
}

func f64(a uint64) float64 { return math.Float64frombits(a) }
