// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Every datatype, operation and form can be named without package atomic, and keeps its
// name.
func TestConstantsAreReachable(t *testing.T) {
	datatypes := []xdpfab.Datatype{
		xdpfab.Int8, xdpfab.Uint8, xdpfab.Int16, xdpfab.Uint16, xdpfab.Int32, xdpfab.Uint32, xdpfab.Int64, xdpfab.Uint64,
		xdpfab.Float, xdpfab.Double, xdpfab.FloatComplex, xdpfab.DoubleComplex, xdpfab.LongDouble, xdpfab.LongDoubleComplex,
		xdpfab.Int128, xdpfab.Uint128, xdpfab.Float16, xdpfab.BFloat16, xdpfab.Float8E4M3, xdpfab.Float8E5M2,
	}
	ops := []xdpfab.Op{
		xdpfab.Min, xdpfab.Max, xdpfab.Sum, xdpfab.Prod, xdpfab.Lor, xdpfab.Land, xdpfab.Bor, xdpfab.Band, xdpfab.Lxor, xdpfab.Bxor,
		xdpfab.Read, xdpfab.Write, xdpfab.Cswap, xdpfab.CswapNE, xdpfab.CswapLE, xdpfab.CswapLT, xdpfab.CswapGE, xdpfab.CswapGT,
		xdpfab.Mswap, xdpfab.Diff,
	}
	forms := []xdpfab.Func{xdpfab.Base, xdpfab.Fetch, xdpfab.Compare}
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
