// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
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
	fmt.Fprint(w, "OPERATION")
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

// otherTypes are the names that programming languages and other libraries have for
// datatypes, and those here.
var otherTypes = map[string]string{
	"float64": "double", "f64": "double", "float32": "float", "f32": "float", "single": "float", "half": "float16",
	"f16": "float16", "bf16": "bfloat16", "complex64": "float_complex", "complex128": "double_complex",
	"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "i128": "int128", "u8": "uint8", "u16": "uint16",
	"u32": "uint32", "u64": "uint64", "u128": "uint128", "byte": "uint8", "char": "int8", "short": "int16",
	"int": "int64, or int32", "integer": "int64, or int32", "uint": "uint64, or uint32",
	"unsigned": "uint64, or uint32", "long": "int64", "ulong": "uint64", "size_t": "uint64", "uintptr": "uint64",
	"float8": "float8_e4m3, or float8_e5m2", "fp8": "float8_e4m3, or float8_e5m2",
	"complex": "float_complex, or double_complex", "longdouble": "long_double", "bool": "uint8",
}

// isLongFlag reports whether an operand looks like a flag: one behind "--" is taken for
// an operand.
func isLongFlag(text string) bool { return strings.HasPrefix(text, "--") }

// formFor returns the form named, or else one that returns the values from before.
func formFor(name string, op atomic.Op, dt atomic.Datatype) (atomic.Func, error) {
	valid := formsOf(op, dt)
	if len(valid) == 0 {
		var has []string
		for other := range atomic.Ops() {
			if len(formsOf(other, dt)) > 0 {
				has = append(has, other.String())
			}
		}
		return 0, fmt.Errorf("%v is not defined for %v: want one of %s", op, dt, strings.Join(has, ", "))
	}
	if name == "" {
		name = valid[len(valid)-1]
	}
	form, err := atomic.ParseFunc(name)
	if err != nil || !slices.Contains(valid, name) {
		return 0, fmt.Errorf("form %q of %v on %v: want %s", name, op, dt, strings.Join(valid, " or "))
	}
	return form, nil
}
