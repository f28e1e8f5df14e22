// SPDX-License-Identifier: Apache-2.0

package atomic_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
)

func Example() {
	counters := make([]byte, 16) // two uint64
	operand := make([]byte, 16)
	before := make([]byte, 16)
	binary.LittleEndian.PutUint64(counters[8:], 40)
	binary.LittleEndian.PutUint64(operand, 1)
	binary.LittleEndian.PutUint64(operand[8:], 2)

	err := atomic.Apply(atomic.Fetch, atomic.Sum, atomic.Uint64, counters, operand, nil, before, 2)
	fmt.Println(err, binary.LittleEndian.Uint64(counters[8:]), binary.LittleEndian.Uint64(before[8:]))

	err = atomic.Apply(atomic.Base, atomic.Max, atomic.DoubleComplex, counters, operand, nil, nil, 1)
	fmt.Println(errors.Is(err, atomic.ErrUnsupported))
	// Output:
	// <nil> 42 40
	// true
}

// Not every datatype has every operation in every form.
func ExampleValid() {
	fmt.Println(atomic.Valid(atomic.Fetch, atomic.Sum, atomic.Double))  // previous + operand
	fmt.Println(atomic.Valid(atomic.Fetch, atomic.Band, atomic.Double)) // bits of a float
	fmt.Println(atomic.Valid(atomic.Base, atomic.Cswap, atomic.Uint64)) // without a comparand
	fmt.Println(atomic.Valid(atomic.Compare, atomic.Cswap, atomic.Uint64))
	// Output:
	// true
	// false
	// false
	// true
}

// Operations and datatypes have names, as the command line takes them.
func ExampleParseOp() {
	op, err := atomic.ParseOp("sum_at_most")
	fmt.Println(op == atomic.SumAtMost, err)
	dt, err := atomic.ParseDatatype("double")
	fmt.Println(dt, dt.Size(), err)
	// Output:
	// true <nil>
	// double 8 <nil>
}
