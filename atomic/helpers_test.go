// SPDX-License-Identifier: Apache-2.0

package atomic

import "unsafe"

// aligned returns n zero bytes that start at a multiple of 32, in the middle of
// a larger allocation whose other bytes are guard.
func aligned(n int) []byte {
	b := make([]byte, n+96)
	off := 32 + (32-misalignment(b[32:], 32))%32
	return b[off : off+n : off+n]
}

// buffers makes the four arguments of a kernel for n elements. All but the
// target are misaligned by one byte.
func buffers(dt Datatype, n int) (target, operand, compare, result []byte) {
	size := n * dt.Size()
	odd := func() []byte { return aligned(size + 1)[1:] }
	return aligned(size), odd(), odd(), odd()
}

// words views bytes as integers, for sync/atomic.
func words[T uint32 | uint64](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/sizeOf[T]())
}

// triples calls f for every valid function, operation and datatype.
func triples(visit func(f Func, op Op, dt Datatype)) {
	for f := range Func(NumFuncs) {
		for op := range Op(NumOps) {
			for dt := range Datatype(NumDatatypes) {
				if Valid(f, op, dt) {
					visit(f, op, dt)
				}
			}
		}
	}
}
