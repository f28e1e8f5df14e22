// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/xdpfab/xdpfab/atomic"
)

// formsOf lists the forms in which an operation is valid for a datatype.
func formsOf(op atomic.Op, dt atomic.Datatype) []string {
	var forms []string
	for f := range atomic.Func(atomic.NumFuncs) {
		if atomic.Valid(f, op, dt) {
			forms = append(forms, f.String())
		}
	}
	return forms
}

// operationsText prints the table of fi_atomic(3), and the operations that it lacks: a
// row for each, with the forms that are valid; datatypes of one class share a column.
func operationsText(w io.Writer) {
	columns := []struct {
		title string
		dt    atomic.Datatype // stands for all of its class
	}{{"INTEGER", atomic.Uint64}, {"FLOAT", atomic.Double}, {"COMPLEX", atomic.DoubleComplex}}
	fmt.Fprint(w, "\nOPERATION")
	for _, col := range columns {
		fmt.Fprintf(w, "\t%s", col.title)
	}
	fmt.Fprintln(w)
	for op := range atomic.Ops() {
		fmt.Fprint(w, op)
		for _, col := range columns {
			fmt.Fprintf(w, "\t%s", orDash(strings.Join(formsOf(op, col.dt), " ")))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for i, col := range columns {
		var names []string
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			if classOf(dt) == i {
				names = append(names, dt.String())
			}
		}
		fmt.Fprintf(w, "%s\t%s\n", strings.ToLower(col.title), strings.Join(names, " "))
	}
}

// classOf returns the column of a datatype, which follows from the operations that are
// valid for it.
func classOf(dt atomic.Datatype) int {
	switch {
	case atomic.Valid(atomic.Base, atomic.Bor, dt):
		return 0
	case atomic.Valid(atomic.Base, atomic.Min, dt):
		return 1
	}
	return 2
}

// otherNames are the names that other libraries have for operations, and those here.
var otherNames = map[string]string{
	"add": "sum", "inc": "sum, with the value 1", "increment": "sum, with the value 1", "fetch_add": "sum",
	"fetchadd": "sum", "faa": "sum", "sub": "diff", "subtract": "diff", "mul": "prod", "multiply": "prod",
	"or": "bor, of bits, or lor", "and": "band, of bits, or land", "xor": "bxor, of bits, or lxor",
	"cas": "cswap", "compare_and_swap": "cswap", "cmpxchg": "cswap", "swap": "write", "exchange": "write",
	"xchg": "write", "set": "write", "store": "write", "get": "read", "load": "read",
}
