// SPDX-License-Identifier: Apache-2.0

package atomic

// class groups the datatypes that allow the same operations.
type class uint8

const (
	integer class = 1 << iota
	floating
	complexed

	ordered  = integer | floating
	anyClass = ordered | complexed
)

// validClasses tells, for each function and operation, the classes of datatypes
// it is defined on; zero where the pair makes no sense. Written out, because the
// table is the reference for what fi_*_atomicvalid answer.
var validClasses = [NumFuncs][NumOps]class{
	Base: {
		Min: ordered, Max: ordered, Sum: anyClass, Prod: anyClass, Diff: anyClass,
		Lor: anyClass, Land: anyClass, Lxor: anyClass,
		Bor: integer, Band: integer, Bxor: integer, Write: anyClass,
		SumSat: integer, DiffSat: integer,
	},
	Fetch: {
		Min: ordered, Max: ordered, Sum: anyClass, Prod: anyClass, Diff: anyClass,
		Lor: anyClass, Land: anyClass, Lxor: anyClass,
		Bor: integer, Band: integer, Bxor: integer, Write: anyClass, Read: anyClass,
		SumSat: integer, DiffSat: integer,
	},
	Compare: {
		Cswap: anyClass, CswapNE: anyClass,
		CswapLE: ordered, CswapLT: ordered, CswapGE: ordered, CswapGT: ordered,
		Mswap: integer, Msum: integer,
		SumAtMost: integer, DiffAtLeast: integer,
	},
}

// Valid reports whether op on dt can be asked for by function f. It accepts any
// values, also undefined ones, and answers false for those.
func Valid(f Func, op Op, dt Datatype) bool {
	return f < NumFuncs && op < NumOps && dt < NumDatatypes &&
		validClasses[f][op]&datatypes[dt].class != 0
}
