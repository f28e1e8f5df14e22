// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestNamesAndValues(t *testing.T) {
	// A sample of wire values: the first and last, and places where an
	// insertion would show.
	for _, c := range []struct {
		got  fmt.Stringer
		val  int
		want string
	}{
		{Int8, 0, "int8"}, {Double, 9, "double"}, {FloatComplex, 10, "float_complex"}, {LongDouble, 12, "long_double"},
		{Int128, 14, "int128"}, {BFloat16, 17, "bfloat16"}, {Float8E4M3, 18, "float8_e4m3"}, {Float8E5M2, 19, "float8_e5m2"},
		{Min, 0, "min"}, {Bxor, 9, "bxor"}, {Read, 10, "read"}, {Cswap, 12, "cswap"}, {CswapNE, 13, "cswap_ne"},
		{CswapGT, 17, "cswap_gt"}, {Mswap, 18, "mswap"}, {Diff, 19, "diff"},
		{SumAtMost, 32, "sum_at_most"}, {SumSat, 34, "sum_sat"}, {Msum, 36, "msum"}, {Op(37), 37, "op(37)"},
		{Base, 0, "base"}, {Fetch, 1, "fetch"}, {Compare, 2, "compare"},
		{Datatype(20), 20, "datatype(20)"}, {Op(20), 20, "op(20)"}, {Func(3), 3, "func(3)"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%T %d is %q; want %q", c.got, c.val, got, c.want)
		}
		if got := fmt.Sprintf("%d", c.got); got != fmt.Sprint(c.val) {
			t.Errorf("%v has value %s; want %d", c.got, got, c.val)
		}
	}
}

func TestParseIsTheInverseOfString(t *testing.T) {
	for dt := range Datatype(NumDatatypes) {
		if got, err := ParseDatatype(dt.String()); got != dt || err != nil {
			t.Errorf("ParseDatatype(%q) = %v, %v", dt, got, err)
		}
	}
	for op := range Ops() {
		if got, err := ParseOp(op.String()); got != op || err != nil {
			t.Errorf("ParseOp(%q) = %v, %v", op, got, err)
		}
	}
	for f := range Func(NumFuncs) {
		if got, err := ParseFunc(f.String()); got != f || err != nil {
			t.Errorf("ParseFunc(%q) = %v, %v", f, got, err)
		}
	}
	for _, s := range []string{"", "INT8", "datatype(20)", "op(20)", "func(3)"} {
		_, e1 := ParseDatatype(s)
		_, e2 := ParseOp(s)
		_, e3 := ParseFunc(s)
		for _, err := range []error{e1, e2, e3} {
			if !errors.Is(err, ErrUnknownName) {
				t.Errorf("parsing %q: %v; want ErrUnknownName", s, err)
			}
		}
	}
}

// The error of an unknown name lists the known ones, and asks for the closest.
func TestUnknownName(t *testing.T) {
	_, op := ParseOp("summ")
	_, dt := ParseDatatype("UINT64")
	_, none := ParseFunc("other")
	for want, err := range map[string]error{
		`xdpfab: unknown name: operation "summ", did you mean sum?: want one of min, max, sum, prod, `: op,
		`xdpfab: unknown name: datatype "UINT64", did you mean uint64?: want one of int8, uint8, `:     dt,
		`xdpfab: unknown name: function "other": want one of base, fetch, compare`:                     none,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSizeAndAlign(t *testing.T) {
	sizes := [NumDatatypes]int{1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16, 2, 2, 1, 1}
	for dt, size := range sizes {
		dt := Datatype(dt)
		align := size
		if dt == FloatComplex || dt == DoubleComplex || dt == LongDoubleComplex {
			align = size / 2 // C's: that of a part
		}
		if dt.Size() != size || dt.Align() != align {
			t.Errorf("%v: size %d align %d; want %d %d", dt, dt.Size(), dt.Align(), size, align)
		}
	}
	if d := Datatype(NumDatatypes); d.Size() != 0 || d.Align() != 0 {
		t.Errorf("unknown datatype: size %d align %d; want 0 0", d.Size(), d.Align())
	}
}

// Ops yields each operation once, those that are defined on integers, and no number
// between libfabric's and xdpfab's own.
func TestOps(t *testing.T) {
	all := slices.Collect(Ops())
	if len(all) != 25 || all[0] != Min || all[19] != Diff || all[20] != SumAtMost || all[24] != Msum {
		t.Errorf("the operations are %v", all)
	}
	for op := range Op(255) {
		known := false
		for f := range Func(NumFuncs) {
			known = known || Valid(f, op, Uint64)
		}
		if known != slices.Contains(all, op) {
			t.Errorf("%v is among the operations: %t", op, !known)
		}
	}
	for op := range Ops() { // may be left early
		if op == Sum {
			break
		}
	}
}

// TestValidCounts counts triples per function and class: 10 integers, 7 reals,
// 3 complex.
func TestValidCounts(t *testing.T) {
	var perFunc [NumFuncs]int
	triples(func(f Func, op Op, dt Datatype) { perFunc[f]++ })
	want := [NumFuncs]int{
		// all / without the bitwise three and the saturating two / also without min, max
		Base:    10*14 + 7*9 + 3*7,
		Fetch:   10*15 + 7*10 + 3*8, // and read
		Compare: 10*10 + 7*6 + 3*2,
	}
	if perFunc != want {
		t.Errorf("valid triples per function: %v; want %v", perFunc, want)
	}
	for _, c := range []struct {
		f    Func
		op   Op
		dt   Datatype
		want bool
	}{
		{Base, Read, Uint64, false}, {Fetch, Read, LongDoubleComplex, true}, {Compare, Write, Int8, false},
		{Compare, Sum, Int8, false}, {Base, Cswap, Int8, false}, {Compare, CswapNE, DoubleComplex, true},
		{Compare, CswapLE, FloatComplex, false}, {Base, Land, FloatComplex, true}, {Base, Bor, Float, false},
		{Compare, Mswap, Uint128, true}, {Compare, Mswap, Float16, false}, {Fetch, Max, Float8E4M3, true},
		{Func(3), Sum, Int8, false}, {Base, Op(20), Int8, false}, {Base, Sum, Datatype(20), false}, {255, 255, 255, false},
		{Compare, SumAtMost, Int128, true}, {Fetch, SumAtMost, Int8, false}, {Compare, DiffAtLeast, Double, false},
		{Base, SumSat, Uint8, true}, {Compare, SumSat, Uint8, false}, {Fetch, Msum, Uint8, false},
	} {
		if got := Valid(c.f, c.op, c.dt); got != c.want {
			t.Errorf("Valid(%v, %v, %v) = %v", c.f, c.op, c.dt, got)
		}
	}
}

func TestKernelExactlyWhereValid(t *testing.T) {
	for f := range Func(NumFuncs + 1) {
		for op := range Op(NumOps + 1) {
			for dt := range Datatype(NumDatatypes + 1) {
				if got := KernelOf(f, op, dt) != nil; got != Valid(f, op, dt) {
					t.Errorf("%v %v %v: kernel %v, valid %v", f, op, dt, got, !got)
				}
			}
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	ok := aligned(64)
	for name, c := range map[string]struct {
		f                                Func
		op                               Op
		dt                               Datatype
		target, operand, compare, result []byte
		n                                int
		want                             error
	}{
		"invalid":       {Base, Read, Int8, ok, ok, ok, ok, 1, ErrUnsupported},
		"undefined":     {9, 99, 200, ok, ok, ok, ok, 1, ErrUnsupported},
		"zero":          {Base, Sum, Int8, ok, ok, nil, nil, 0, ErrCount},
		"negative":      {Base, Sum, Int8, ok, ok, nil, nil, math.MinInt, ErrCount},
		"overflow":      {Base, Sum, LongDoubleComplex, ok, ok, nil, nil, math.MaxInt, ErrLength},
		"overflow to 0": {Base, Sum, Uint64, ok, ok, nil, nil, math.MaxInt/4 + 2, ErrLength},
		"short target":  {Base, Sum, Uint64, ok[:15], ok, nil, nil, 2, ErrLength},
		"short operand": {Base, Sum, Uint64, ok, ok[:15], nil, nil, 2, ErrLength},
		"no operand":    {Base, Write, Uint64, ok, nil, nil, nil, 2, ErrLength},
		"short compare": {Compare, Cswap, Uint64, ok, ok, ok[:15], ok, 2, ErrLength},
		"short result":  {Fetch, Sum, Uint64, ok, ok, nil, ok[:15], 2, ErrLength},
		"no result":     {Fetch, Read, Uint64, ok, nil, nil, nil, 2, ErrLength},
		"misaligned 2":  {Base, Sum, Uint16, ok[1:], ok, nil, nil, 1, ErrAlign},
		"misaligned 16": {Base, Sum, LongDouble, ok[8:], ok, nil, nil, 1, ErrAlign},
		"misaligned 32": {Base, Sum, LongDoubleComplex, ok[8:], ok, nil, nil, 1, ErrAlign},
		"fine":          {Base, Sum, LongDoubleComplex, ok[16:], ok, nil, nil, 1, nil},
		"fine, longer":  {Compare, Mswap, Uint8, ok[1:], ok, ok, make([]byte, 64), 3, nil},
		"fine, read":    {Fetch, Read, Uint8, ok[1:], nil, nil, make([]byte, 3), 3, nil},
	} {
		err := Apply(c.f, c.op, c.dt, c.target, c.operand, c.compare, c.result, c.n)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", name, err, c.want)
		}
		if c.want != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v matches no errno", name, err)
		}
	}
}

// TestReadIsACopy: reading leaves memory alone and returns all bits, also of
// signalling NaNs and of long double padding; writing and swapping copy bits.
func TestReadIsACopy(t *testing.T) {
	for dt := range Datatype(NumDatatypes) {
		target, operand, compare, result := buffers(dt, 3)
		for i := range target {
			target[i], operand[i] = byte(0xff-i%7), byte(0x7f^i)
		}
		before := string(target)
		check := func(what, got, want string) {
			if got != want {
				t.Errorf("%v: %s %x; want %x", dt, what, got, want)
			}
		}
		KernelOf(Fetch, Read, dt)(target, nil, nil, result)
		check("read", string(result), before)
		check("after read", string(target), before)
		KernelOf(Fetch, Read, dt)(target, operand[:0], compare[:0], result[:0])
		check("after read for nothing", string(target), before)
		KernelOf(Fetch, Write, dt)(target, operand, nil, result)
		check("write returned", string(result), before)
		check("written", string(target), string(operand))
		clear(target)
		KernelOf(Compare, Cswap, dt)(target, operand, compare, result)
		check("swapped", string(target), string(operand))
	}
}

func TestNoAllocations(t *testing.T) {
	triples(func(f Func, op Op, dt Datatype) {
		target, operand, compare, result := buffers(dt, 4)
		n := testing.AllocsPerRun(10, func() {
			if err := Apply(f, op, dt, target, operand, compare, result, 4); err != nil {
				t.Fatal(err)
			}
			KernelOf(f, op, dt)(target, operand, compare, result)
		})
		if n != 0 {
			t.Errorf("%v %v %v: %v allocations", f, op, dt, n)
		}
	})
}
