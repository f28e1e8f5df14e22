// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
)

// TestSemaphore takes from a word and gives back, between 0 and a limit, in each of the
// ways that memory has: no taker and no giver passes a bound, and the word has what those
// left that Applied counts.
func TestSemaphore(t *testing.T) {
	const limit = 5
	for _, dt := range []Datatype{Int8, Uint16, Int32, Uint32, Int64, Uint64, Int128, Uint128} {
		word, zero, one, most := aligned(dt.Size()), aligned(dt.Size()), aligned(dt.Size()), aligned(dt.Size())
		one[0], most[0], word[0] = 1, limit, 3
		var balance atomic.Int64
		balance.Store(3)
		move := func(op Op, bound []byte, change int64) func(int) {
			return func(int) {
				was := aligned(dt.Size())
				for range raceRounds / 4 {
					KernelOf(Compare, op, dt)(word, one, bound, was)
					if v := binary.LittleEndian.Uint16(append(bytes.Clone(was), 0)); v > limit {
						t.Errorf("%v: the word was %x", dt, was)
						return
					}
					if Applied(op, dt, was, one, bound) {
						balance.Add(change)
					}
				}
			}
		}
		together(move(SumAtMost, most, 1), move(DiffAtLeast, zero, -1))
		if got := int64(word[0]); got != balance.Load() || len(bytes.Trim(word[1:], "\x00")) != 0 {
			t.Errorf("%v: the word is %x, want %d", dt, word, balance.Load())
		}
	}
}

// TestApplied: where Applied says so, a swap has left the operand, and a bounded
// operation another element than before, unless its operand is zero; elsewhere nothing
// has changed.
func TestApplied(t *testing.T) {
	values := [][]byte{{}, {1}, {2}, bytes.Repeat([]byte{0xff}, 16), {15: 0x80}, {7: 0x80}, {3: 0x80}, {0x80}, {0x7f}}
	n := len(values)
	triples(func(f Func, op Op, dt Datatype) {
		if f != Compare {
			return
		}
		stored := 0
		for i := range n * n * n {
			target, operand, compare, result := buffers(dt, 1)
			copy(target, values[i%n])
			copy(operand, values[i/n%n])
			copy(compare, values[i/n/n])
			KernelOf(f, op, dt)(target, operand, compare, result)
			before, operand := result[:dt.Size()], operand[:dt.Size()]
			applied := Applied(op, dt, before, operand, compare)
			want := operand
			switch {
			case op == Mswap || op == Msum:
				continue
			case !applied:
				want = before
			case op == SumAtMost || op == DiffAtLeast:
				if bytes.Equal(target, before) != (len(bytes.Trim(operand, "\x00")) == 0) {
					t.Fatalf("%v %v of %x, %x and %x has left %x", op, dt, before, operand, compare, target)
				}
				want = target
			}
			if !bytes.Equal(target, want) {
				t.Fatalf("%v %v of %x, %x and %x has left %x, want %x", op, dt, before, operand, compare, target, want)
			}
			if applied {
				stored++
			}
		}
		if conditional := op != Mswap && op != Msum; conditional && (stored == 0 || stored == n*n*n) {
			t.Errorf("%v %v stored %d of %d times", op, dt, stored, n*n*n)
		}
	})
	for _, op := range []Op{Sum, Mswap, Msum, 20, 200} {
		if !Applied(op, Uint64, values[0], values[0], values[0]) {
			t.Errorf("%v is said not to have stored", op)
		}
	}
}
