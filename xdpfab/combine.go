// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/atomic"
)

// Integer allows the integers of 8 to 128 bits. Only words of these types have bits,
// fields and bounds: see And, SetBit, AddField, AddAtMost and AddSaturating, for
// instance.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		U128 | I128
}

// Ordered allows the types whose values have an order, which are all but the complex
// numbers: see Max, AtLeast and Less, for instance.
type Ordered interface{ Number | U128 | I128 }

// Max sets a word to v if v is greater, and returns its previous value.
//
// Max and similar functions are not methods, so that the compiler can refuse a type that
// they are not defined on: complex numbers have no order, and floats have no bits.
func Max[T Ordered](ctx context.Context, word Remote[T], v T) (old T, err error) {
	return previous(word.fetch(ctx, "Max", atomic.Max, v))
}

// Min sets a word to v if v is less, and returns its previous value.
func Min[T Ordered](ctx context.Context, word Remote[T], v T) (old T, err error) {
	return previous(word.fetch(ctx, "Min", atomic.Min, v))
}

// And combines a word with mask by bitwise and, and returns its previous value.
func And[T Integer](ctx context.Context, word Remote[T], mask T) (old T, err error) {
	return previous(word.fetch(ctx, "And", atomic.Band, mask))
}

// Or is like And, with bitwise or.
func Or[T Integer](ctx context.Context, word Remote[T], mask T) (old T, err error) {
	return previous(word.fetch(ctx, "Or", atomic.Bor, mask))
}

// Xor is like And, with bitwise exclusive or.
func Xor[T Integer](ctx context.Context, word Remote[T], mask T) (old T, err error) {
	return previous(word.fetch(ctx, "Xor", atomic.Bxor, mask))
}
