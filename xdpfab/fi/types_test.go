// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every datatype, operation and form can be named without package atomic, and keeps its
// name.
func TestConstantsAreReachable(t *testing.T) {
	datatypes := []fi.Datatype{
		fi.Int8, fi.Uint8, fi.Int16, fi.Uint16, fi.Int32, fi.Uint32, fi.Int64, fi.Uint64,
		fi.Float, fi.Double, fi.FloatComplex, fi.DoubleComplex, fi.LongDouble, fi.LongDoubleComplex,
		fi.Int128, fi.Uint128, fi.Float16, fi.BFloat16, fi.Float8E4M3, fi.Float8E5M2,
	}
	ops := []fi.Op{
		fi.Min, fi.Max, fi.Sum, fi.Prod, fi.Lor, fi.Land, fi.Bor, fi.Band, fi.Lxor, fi.Bxor,
		fi.Read, fi.Write, fi.Cswap, fi.CswapNE, fi.CswapLE, fi.CswapLT, fi.CswapGE, fi.CswapGT,
		fi.Mswap, fi.Diff,
	}
	forms := []fi.Func{fi.Base, fi.Fetch, fi.Compare}
	if len(datatypes) != atomic.NumDatatypes || len(ops) != atomic.NumOps || len(forms) != atomic.NumFuncs {
		t.Fatalf("%d datatypes, %d operations, %d forms: want %d, %d, %d",
			len(datatypes), len(ops), len(forms), atomic.NumDatatypes, atomic.NumOps, atomic.NumFuncs)
	}
	for i, dt := range datatypes {
		if dt != atomic.Datatype(i) {
			t.Errorf("%v stands where %v should", dt, atomic.Datatype(i))
		}
	}
	for i, op := range ops {
		if op != atomic.Op(i) {
			t.Errorf("%v stands where %v should", op, atomic.Op(i))
		}
	}
	for i, f := range forms {
		if f != atomic.Func(i) {
			t.Errorf("%v stands where %v should", f, atomic.Func(i))
		}
	}
}
