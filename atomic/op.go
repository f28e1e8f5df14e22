// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"fmt"
	"iter"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Op names an operation, with the values of enum fi_op; those from 32 on are xdpfab's
// own. The values travel on the wire and never change.
type Op uint8

// The operations of fi_atomic(3); t is the target element, b the operand, c the
// comparand. Comparisons read "c relation t", as in the manual page.
const (
	Min     Op = iota // t = b if b < t
	Max               // t = b if b > t
	Sum               // t = t + b
	Prod              // t = t * b
	Lor               // t = t || b
	Land              // t = t && b
	Bor               // t = t | b
	Band              // t = t & b
	Lxor              // t = !t != !b
	Bxor              // t = t ^ b
	Read              // t unchanged
	Write             // t = b
	Cswap             // t = b if c == t
	CswapNE           // t = b if c != t
	CswapLE           // t = b if c <= t
	CswapLT           // t = b if c < t
	CswapGE           // t = b if c >= t
	CswapGT           // t = b if c > t
	Mswap             // t = (b & c) | (t &^ c)
	Diff              // t = t - b
)

// Operations on integers that libfabric does not have. The conditions and bounds are on
// exact results: a sum that does not fit the datatype is not within any bound.
const (
	SumAtMost   Op = 32 + iota // t = t + b if t + b <= c
	DiffAtLeast                // t = t - b if t - b >= c
	SumSat                     // t = t + b, or the limit of the datatype that it would pass
	DiffSat                    // t = t - b, likewise
	Msum                       // t = t + b, but no carry leaves a bit that is set in c

	// NumOps is one more than the largest Op. Not every number below it is an Op: see
	// [Ops].
	NumOps = 32 + iota
)

var opNames = [NumOps]string{
	Min: "min", Max: "max", Sum: "sum", Prod: "prod", Lor: "lor", Land: "land", Bor: "bor", Band: "band",
	Lxor: "lxor", Bxor: "bxor", Read: "read", Write: "write",
	Cswap: "cswap", CswapNE: "cswap_ne", CswapLE: "cswap_le", CswapLT: "cswap_lt", CswapGE: "cswap_ge",
	CswapGT: "cswap_gt", Mswap: "mswap", Diff: "diff",
	SumAtMost: "sum_at_most", DiffAtLeast: "diff_at_least", SumSat: "sum_sat", DiffSat: "diff_sat", Msum: "msum",
}

// Ops yields all operations, in the order of their numbers.
func Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for op, name := range opNames {
			if name != "" && !yield(Op(op)) {
				return
			}
		}
	}
}

// String returns the lower-case name, such as "sum" or "cswap_le".
func (op Op) String() string {
	if op >= NumOps || opNames[op] == "" {
		return fmt.Sprintf("op(%d)", uint8(op))
	}
	return opNames[op]
}

// ParseOp is the inverse of [Op.String]. An unknown name gives an error that
// wraps [ErrUnknownName].
func ParseOp(s string) (Op, error) { return parse[Op]("operation", s, NumOps) }

// Func names one of the three families of calls of fi_atomic(3).
type Func uint8

const (
	Base    Func = iota // fi_atomic: no result
	Fetch               // fi_fetch_atomic: returns the value before
	Compare             // fi_compare_atomic: takes comparands, returns the value before

	// NumFuncs is one more than the largest Func.
	NumFuncs = iota
)

var funcNames = [NumFuncs]string{"base", "fetch", "compare"}

// String returns "base", "fetch" or "compare".
func (f Func) String() string {
	if f >= NumFuncs {
		return fmt.Sprintf("func(%d)", uint8(f))
	}
	return funcNames[f]
}

// ParseFunc is the inverse of [Func.String]. An unknown name gives an error
// that wraps [ErrUnknownName].
func ParseFunc(s string) (Func, error) { return parse[Func]("function", s, NumFuncs) }

// ErrUnknownName is wrapped by the errors of the Parse functions.
var ErrUnknownName = errno.New("unknown name", syscall.EINVAL)

// parse finds the value below n whose name is s; "op(20)" is no name.
func parse[T interface {
	~uint8
	fmt.Stringer
}](what, s string, n int) (T, error) {
	for i := range n {
		if T(i).String() == s && !strings.HasSuffix(s, ")") {
			return T(i), nil
		}
	}
	var names []string
	for i := range n {
		if name := T(i).String(); !strings.HasSuffix(name, ")") { // of a number without a name
			names = append(names, name)
		}
	}
	return 0, fmt.Errorf("xdpfab: %w: %s %q%s: want one of %s", ErrUnknownName, what, s,
		errno.DidYouMean(s, names), strings.Join(names, ", "))
}
