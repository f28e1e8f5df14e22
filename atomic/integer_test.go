// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"encoding/binary"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func bigUint(a word128) *big.Int {
	n := new(big.Int).SetUint64(a.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(a.lo))
}

// bigInt128 is the value of 16 bytes as dt.
func bigInt128(b []byte, dt Datatype) *big.Int {
	n := bigUint(word128{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])})
	if dt == Int128 && n.Bit(127) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return n
}

// bytes128 is n modulo 2^128, little-endian.
func bytes128(n *big.Int) (b [16]byte) {
	mod := new(big.Int).Lsh(big.NewInt(1), 128)
	new(big.Int).Mod(n, mod).FillBytes(b[:])
	for i := range 8 {
		b[i], b[15-i] = b[15-i], b[i]
	}
	return b
}

// model is the manual page in arbitrary precision. Negative numbers of big.Int
// behave like two's complement of infinite width.
func model(op Op, dt Datatype, t, b, c *big.Int) *big.Int {
	truth := func(v bool) *big.Int {
		if v {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	when := func(v bool) *big.Int {
		if v {
			return b
		}
		return t
	}
	r := new(big.Int)
	switch op {
	case Min:
		return when(b.Cmp(t) < 0)
	case Max:
		return when(b.Cmp(t) > 0)
	case Sum:
		return r.Add(t, b)
	case Diff:
		return r.Sub(t, b)
	case Prod:
		return r.Mul(t, b)
	case Lor:
		return truth(t.Sign() != 0 || b.Sign() != 0)
	case Land:
		return truth(t.Sign() != 0 && b.Sign() != 0)
	case Lxor:
		return truth((t.Sign() != 0) != (b.Sign() != 0))
	case Bor:
		return r.Or(t, b)
	case Band:
		return r.And(t, b)
	case Bxor:
		return r.Xor(t, b)
	case Write:
		return b
	case Cswap:
		return when(c.Cmp(t) == 0)
	case CswapNE:
		return when(c.Cmp(t) != 0)
	case CswapLE:
		return when(c.Cmp(t) <= 0)
	case CswapLT:
		return when(c.Cmp(t) < 0)
	case CswapGE:
		return when(c.Cmp(t) >= 0)
	case CswapGT:
		return when(c.Cmp(t) > 0)
	case Mswap:
		return r.Or(new(big.Int).And(b, c), new(big.Int).AndNot(t, c))
	}
	if op >= SumAtMost {
		return boundedModel(op, dt, t, b, c)
	}
	return t
}

// boundedModel is model for the operations that libfabric does not have.
func boundedModel(op Op, dt Datatype, t, b, c *big.Int) *big.Int {
	bits := uint(8 * dt.Size())
	lowest, highest := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits)
	if dt%2 == 0 { // signed
		highest.Rsh(highest, 1)
		lowest.Neg(highest)
	}
	highest.Sub(highest, big.NewInt(1))
	r := new(big.Int).Add(t, b)
	if op == DiffAtLeast || op == DiffSat {
		r.Sub(t, b)
	}
	outside := r.Cmp(lowest) < 0 || r.Cmp(highest) > 0
	switch {
	case op == SumAtMost && (outside || r.Cmp(c) > 0), op == DiffAtLeast && (outside || r.Cmp(c) < 0):
		return t
	case op == SumSat || op == DiffSat:
		if r.Cmp(lowest) < 0 {
			return lowest
		} else if r.Cmp(highest) > 0 {
			return highest
		}
	case op == Msum: // field by field
		r.SetInt64(0)
		for from := uint(0); from < bits; {
			to := from
			for to < bits-1 && c.Bit(int(to)) == 0 {
				to++
			}
			field := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), to+1-from), big.NewInt(1))
			cut := func(n *big.Int) *big.Int { return n.And(n, field) }
			sum := cut(new(big.Int).Add(cut(new(big.Int).Rsh(t, from)), cut(new(big.Int).Rsh(b, from))))
			r.Or(r, sum.Lsh(sum, from))
			from = to + 1
		}
	}
	return r
}

// TestInt128AgainstBig draws operands that agree often, in half or all of their
// bits, so that comparisons and carries across the halves are exercised.
func TestInt128AgainstBig(t *testing.T) {
	type form struct {
		f  Func
		op Op
		dt Datatype
	}
	var forms []form
	for _, dt := range []Datatype{Int128, Uint128} {
		for f := Fetch; f <= Compare; f++ {
			for op := range Ops() {
				if Valid(f, op, dt) {
					forms = append(forms, form{f, op, dt})
				}
			}
		}
	}
	half := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, ^uint64(0), 1 << 63, 1<<63 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SampledFrom(forms).Draw(t, "form")
		f, op, dt := drawn.f, drawn.op, drawn.dt
		target, operand, compare, result := buffers(dt, 1)
		for _, b := range [][]byte{target, operand, compare} {
			binary.LittleEndian.PutUint64(b, half.Draw(t, "lo"))
			binary.LittleEndian.PutUint64(b[8:], half.Draw(t, "hi"))
		}
		if rapid.Bool().Draw(t, "equal") {
			copy(compare, target)
		}
		before := string(target)
		want := bytes128(model(op, dt, bigInt128(target, dt), bigInt128(operand, dt), bigInt128(compare, dt)))
		if err := Apply(f, op, dt, target, operand, compare, result, 1); err != nil {
			t.Fatal(err)
		}
		if string(target) != string(want[:]) || string(result) != before {
			t.Fatalf("%v %v: target %x result %x; want %x and %x", op, dt, target, result, want, before)
		}
	})
}

// TestHotAgreesWithModel covers the specialised loops at both word sizes, with
// and without result, at their boundary values.
func TestHotAgreesWithModel(t *testing.T) {
	edge := []uint64{0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 1<<63 - 1, 1 << 63, ^uint64(0), 0x0123456789abcdef}
	extend := func(b []byte, dt Datatype) *big.Int { // value of an element
		switch dt {
		case Int32:
			return big.NewInt(int64(int32(binary.LittleEndian.Uint32(b))))
		case Uint32:
			return big.NewInt(int64(binary.LittleEndian.Uint32(b)))
		case Int64:
			return big.NewInt(int64(binary.LittleEndian.Uint64(b)))
		}
		return new(big.Int).SetUint64(binary.LittleEndian.Uint64(b))
	}
	triples(func(f Func, op Op, dt Datatype) {
		if dt < Int32 || dt > Uint64 {
			return
		}
		target, operand, compare, result := buffers(Uint64, 1)
		size := dt.Size()
		for i := range len(edge) * len(edge) * len(edge) {
			binary.LittleEndian.PutUint64(target, edge[i%10])
			binary.LittleEndian.PutUint64(operand, edge[i/10%10])
			binary.LittleEndian.PutUint64(compare, edge[i/100])
			before := string(target[:size])
			want := bytes128(model(op, dt, extend(target, dt), extend(operand, dt), extend(compare, dt)))
			res := result
			if f == Base {
				res = nil
			}
			KernelOf(f, op, dt)(target[:size], operand, compare, res)
			if string(target[:size]) != string(want[:size]) || f != Base && string(result[:size]) != before {
				t.Fatalf("%v %v %v: target %x result %x; want %x and %x", f, op, dt, target[:size], result[:size], want[:size], before)
			}
		}
	})
}
