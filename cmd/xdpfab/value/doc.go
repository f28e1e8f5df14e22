// SPDX-License-Identifier: Apache-2.0

// Package value turns the elements of an atomic operation into text and back.
// An operation that a person types begins and ends here: the text of the command line
// becomes the little-endian bytes that travel, and the bytes that come back become
// text.
//
// Parse and Format are inverse: what Format prints is the shortest text that
// Parse turns into the very same bits. Nothing is rounded twice: a decimal is an
// exact fraction until the one rounding, to nearest, ties to even, into the
// datatype.
//
//	integers   42  -7  0xff             in range, or refused
//	floats     0.1  1e-7  0x1.8p3  inf  -inf  nan
//	complex    1+2i  -0.5i  nan+infi    parts as floats
//	any        bits:0x7fc00001          the element as a number of its width
package value
