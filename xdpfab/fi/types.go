// SPDX-License-Identifier: Apache-2.0

package fi

import "github.com/xdpfab/xdpfab/atomic"

// Package atomic in this module has the name of a package of Go's own that users of
// remote atomics are likely to import. So its types and constants are also declared here.

// Datatype is the type of an element (enum fi_datatype).
type Datatype = atomic.Datatype

// The datatypes. Values in buffers are little-endian.
const (
	Int8              = atomic.Int8
	Uint8             = atomic.Uint8
	Int16             = atomic.Int16
	Uint16            = atomic.Uint16
	Int32             = atomic.Int32
	Uint32            = atomic.Uint32
	Int64             = atomic.Int64
	Uint64            = atomic.Uint64
	Float             = atomic.Float             // binary32
	Double            = atomic.Double            // binary64
	FloatComplex      = atomic.FloatComplex      // two Float
	DoubleComplex     = atomic.DoubleComplex     // two Double
	LongDouble        = atomic.LongDouble        // x87 80-bit extended in 16 bytes
	LongDoubleComplex = atomic.LongDoubleComplex // two LongDouble
	Int128            = atomic.Int128
	Uint128           = atomic.Uint128
	Float16           = atomic.Float16    // IEEE 754 binary16
	BFloat16          = atomic.BFloat16   // upper half of a binary32
	Float8E4M3        = atomic.Float8E4M3 // OCP OFP8 E4M3: no infinities
	Float8E5M2        = atomic.Float8E5M2 // OCP OFP8 E5M2
)

// Op is the effect of an operation on an element (enum fi_op).
type Op = atomic.Op

// The operations on a target element t, with an operand element b, and a compare element
// c in the compare form.
const (
	Min     = atomic.Min     // t = b if b < t
	Max     = atomic.Max     // t = b if b > t
	Sum     = atomic.Sum     // t = t + b
	Prod    = atomic.Prod    // t = t * b
	Lor     = atomic.Lor     // t = t || b
	Land    = atomic.Land    // t = t && b
	Bor     = atomic.Bor     // t = t | b
	Band    = atomic.Band    // t = t & b
	Lxor    = atomic.Lxor    // t = !t != !b
	Bxor    = atomic.Bxor    // t = t ^ b
	Read    = atomic.Read    // t unchanged
	Write   = atomic.Write   // t = b
	Cswap   = atomic.Cswap   // t = b if c == t
	CswapNE = atomic.CswapNE // t = b if c != t
	CswapLE = atomic.CswapLE // t = b if c <= t
	CswapLT = atomic.CswapLT // t = b if c < t
	CswapGE = atomic.CswapGE // t = b if c >= t
	CswapGT = atomic.CswapGT // t = b if c > t
	Mswap   = atomic.Mswap   // t = (b & c) | (t &^ c)
	Diff    = atomic.Diff    // t = t - b
)

// Func is the form of an operation.
type Func = atomic.Func

// The forms.
const (
	Base    = atomic.Base    // Endpoint.Atomic: no result
	Fetch   = atomic.Fetch   // Endpoint.FetchAtomic: returns the value before
	Compare = atomic.Compare // Endpoint.CompareAtomic: takes comparands, returns the value before
)
