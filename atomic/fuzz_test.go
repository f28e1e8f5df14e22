// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"testing"
)

// FuzzApply: no arguments make Apply panic, write outside of target and result,
// or return anything but the old value.
func FuzzApply(f *testing.F) {
	f.Add(uint8(Base), uint8(Sum), uint8(Uint64), uint8(0), int64(1), []byte("0123456789abcdef"))
	f.Add(uint8(Fetch), uint8(Prod), uint8(LongDoubleComplex), uint8(16), int64(1), bytes.Repeat([]byte{0x7f, 0xff, 0x80}, 40))
	f.Add(uint8(Compare), uint8(Mswap), uint8(Int8), uint8(3), int64(7), bytes.Repeat([]byte{1, 2, 3, 0xff}, 8))
	f.Add(uint8(Compare), uint8(CswapGE), uint8(Float16), uint8(2), int64(3), bytes.Repeat([]byte{0, 0x7e, 0, 0x80}, 8))
	f.Add(uint8(Fetch), uint8(Read), uint8(Uint128), uint8(8), int64(1), make([]byte, 64))
	f.Add(uint8(Fetch), uint8(Max), uint8(Float8E4M3), uint8(1), int64(-1), make([]byte, 3))
	f.Add(uint8(Compare), uint8(SumAtMost), uint8(Int16), uint8(2), int64(3), bytes.Repeat([]byte{0xff, 0x7f, 0, 0x80}, 8))
	f.Add(uint8(Fetch), uint8(DiffSat), uint8(Uint128), uint8(16), int64(2), bytes.Repeat([]byte{1, 0xff}, 24))
	f.Add(uint8(Compare), uint8(Msum), uint8(Uint64), uint8(8), int64(1), bytes.Repeat([]byte{0x88}, 16))
	f.Add(uint8(255), uint8(255), uint8(255), uint8(255), int64(1)<<62, []byte{})
	f.Fuzz(func(t *testing.T, fn, op, dt, off uint8, n int64, data []byte) {
		// Arenas with guards around; data fills all of them.
		const guard = 32
		fill := func(shift int) []byte {
			b := aligned(guard + len(data) + int(off) + guard)
			for i := range b {
				b[i] = byte(0xa5 + shift)
			}
			copy(b[guard+int(off):], data)
			return b
		}
		arena, opArena, cmpArena, resArena := fill(0), fill(0), fill(0), fill(1)
		window := func(b []byte) []byte { return b[guard+int(off) : guard+int(off)+len(data)] }
		target, result := window(arena), window(resArena)
		before, resBefore := bytes.Clone(arena), bytes.Clone(resArena)
		// Operand and comparand one element apart, so that they differ.
		operand, compare := opArena[guard:], cmpArena[guard+int(off)/2:]
		opBefore, cmpBefore := bytes.Clone(opArena), bytes.Clone(cmpArena)

		err := Apply(Func(fn), Op(op), Datatype(dt), target, operand, compare, result, int(n))

		done := 0 // bytes that may have changed
		if err == nil {
			done = int(n) * Datatype(dt).Size()
		}
		start := guard + int(off)
		wrote := Func(fn) != Base && err == nil
		outside := func(what string, now, was []byte, n int) {
			if !bytes.Equal(now[:start], was[:start]) || !bytes.Equal(now[start+n:], was[start+n:]) {
				t.Errorf("%s: written outside", what)
			}
		}
		outside("target", arena, before, done)
		if wrote {
			outside("result", resArena, resBefore, done)
			if !bytes.Equal(result[:done], before[start:start+done]) {
				t.Errorf("result %x; the target was %x", result[:done], before[start:start+done])
			}
		} else {
			outside("result", resArena, resBefore, 0)
		}
		outside("operand", opArena, opBefore, 0)
		outside("compare", cmpArena, cmpBefore, 0)
		if Op(op) == Read && !bytes.Equal(arena, before) {
			t.Error("a read wrote")
		}
	})
}
