// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// AddAtMost adds delta to a word, provided that the sum is at most most, and reports
// whether it did. This is a quota in one round trip. A sum that T cannot hold exceeds
// every bound.
func AddAtMost[T Integer](ctx context.Context, word Remote[T], delta, most T) (added bool, err error) {
	return within(ctx, word, "AddAtMost", atomic.SumAtMost, delta, most)
}

// SubAtLeast subtracts delta from a word if at least least is left, and reports whether
// it did: a semaphore, if least is 0. A difference that T cannot hold is within no bound.
func SubAtLeast[T Integer](ctx context.Context, word Remote[T], delta, least T) (taken bool, err error) {
	return within(ctx, word, "SubAtLeast", atomic.DiffAtLeast, delta, least)
}

// within runs an operation with a bound, and reports whether the bound held.
func within[T Integer](ctx context.Context, word Remote[T], method string, op atomic.Op, delta, bound T) (bool, error) {
	held := func(was []byte) bool {
		b, c := toBytes(delta), toBytes(bound)
		return atomic.Applied(op, word.dt, was, b[:], c[:])
	}
	old, err := word.compare(ctx, method, op, bound, delta)
	if err != nil {
		return false, later(err, held)
	}
	was := toBytes(old)
	return held(was[:]), nil
}

// AddSaturating adds delta to a word, but stops at the greatest or the least value of T,
// and returns the word's previous value.
func AddSaturating[T Integer](ctx context.Context, word Remote[T], delta T) (old T, err error) {
	return previous(word.fetch(ctx, "AddSaturating", atomic.SumSat, delta))
}

// SubSaturating is like AddSaturating, with a subtraction: an unsigned word stops at 0.
func SubSaturating[T Integer](ctx context.Context, word Remote[T], delta T) (old T, err error) {
	return previous(word.fetch(ctx, "SubSaturating", atomic.DiffSat, delta))
}

// AddField adds delta to the width bits of a word that begin at bit offset, and returns
// their previous value, as a number without a sign. The sum wraps around within the
// field; other bits of the word stay as they are.
func AddField[T Integer](ctx context.Context, word Remote[T], offset, width int, delta T) (old T, err error) {
	if err := word.checkBits("AddField", wire.VerbCompare, atomic.Msum, offset, width); err != nil {
		return old, err
	}
	cut := func(was []byte) T {
		n := wordOfBits(elementOf[T](was))
		return bitsOf[T](n.right(offset).low(width))
	}
	operand := bitsOf[T](wordOfBits(delta).low(width).left(offset))
	last := bitsOf[T](U128{Lo: 1}.left(offset + width - 1))
	whole, err := word.compare(ctx, "AddField", atomic.Msum, last, operand)
	if err != nil {
		return old, later(err, cut)
	}
	was := toBytes(whole)
	return cut(was[:]), nil
}

// SetBit sets a bit of a word, counted from the lowest, and reports whether it was set
// already: of many callers only one finds it clear.
func SetBit[T Integer](ctx context.Context, word Remote[T], bit int) (was bool, err error) {
	return changeBit(ctx, word, "SetBit", atomic.Bor, bit, func(mask U128) U128 { return mask })
}

// ClearBit clears a bit of a word, and reports whether it was set.
func ClearBit[T Integer](ctx context.Context, word Remote[T], bit int) (was bool, err error) {
	return changeBit(ctx, word, "ClearBit", atomic.Band, bit, func(mask U128) U128 { return U128{^mask.Lo, ^mask.Hi} })
}

// changeBit combines a word with what operand makes of the mask of a bit.
func changeBit[T Integer](ctx context.Context, word Remote[T], method string, op atomic.Op, bit int,
	operand func(mask U128) U128) (bool, error) {
	if err := word.checkBits(method, wire.VerbFetch, op, bit, 1); err != nil {
		return false, err
	}
	set := func(was []byte) bool { return wordOfBits(elementOf[T](was)).right(bit).Lo&1 != 0 }
	old, err := word.fetch(ctx, method, op, bitsOf[T](operand(U128{Lo: 1}.left(bit))))
	if err != nil {
		return false, later(err, set)
	}
	was := toBytes(old)
	return set(was[:]), nil
}

// checkBits refuses bits that the word does not have.
func (r Remote[T]) checkBits(method string, verb wire.Verb, op atomic.Op, offset, width int) error {
	if err := r.check(method, verb, op); err != nil {
		return err
	}
	if width < 1 {
		return errno.Unsent(errno.Refuse(ErrArgument, "xdpfab: %s: a field of %d bits: want 1 to %d", r.of(method),
			width, 8*r.size))
	}
	if size := 8 * r.size; offset < 0 || offset >= size || width > size-offset {
		which := fmt.Sprintf("bit %d", offset)
		if method == "AddField" {
			which = fmt.Sprintf("%d bits from bit %d on", width, offset)
		}
		return errno.Unsent(errno.Refuse(ErrOutOfBounds, "xdpfab: %s: %s: the word has bits 0 to %d", r.of(method),
			which, size-1))
	}
	return nil
}
