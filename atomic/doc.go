// SPDX-License-Identifier: Apache-2.0

// Package atomic names the operations and the datatypes of fi_atomic(3), and executes
// them on local memory.
//
// # For programs
//
// A program that calls the methods of a peer's words needs nothing of this package, or an
// [Op] alone: Remote.Fetch, Remote.WaitCompare and Signal of package xdpfab take one,
// such as [Sum] or [Max]. A program that reads operations from a user has [ParseOp],
// [ParseDatatype], [Ops] and [Valid], which tells what goes together. [Applied] tells
// whether an operation with a condition has changed the word. [Apply] executes an
// operation on memory of the program's own, as a peer's would be.
//
// # For devices
//
// Those who execute what peers ask for have one [Kernel] for every valid triple
// ([KernelOf]), a [Sweep] for many elements ([SweepOf]), [Touch], and the copies
// [ReadBytes] and [WriteBytes]. This is the last station in the life of an operation: a
// request record has been received, decoded, put in order and checked against its memory
// region; it remains to combine operand elements with target elements, atomically, and to
// hand back the values that were there before. The package knows nothing of frames,
// regions or endpoints.
//
// # Atomicity
//
// The unit is one element. By size:
//
//   - 1 and 2 bytes: compare-and-swap on the aligned 32-bit word around the
//     element. That needs no assembly, works on every architecture, is visible
//     to the race detector, and is atomic even against plain stores to the
//     neighbours, since such a store makes the compare fail. An aligned word
//     never leaves the page, so access rights are those of the element.
//   - 4 and 8 bytes: sync/atomic on the element itself, so that this package
//     and any Go code using sync/atomic on the same bytes exclude each other.
//   - 16 bytes: CMPXCHG16B on amd64, CASP on arm64 (Armv8.1); elsewhere, and on CPUs
//     without them, the lock table below. On amd64, loads use an aligned 16-byte
//     MOVDQA, which Intel and AMD document as atomic on CPUs with AVX, and which works
//     on read-only mappings. Without AVX, loads also use CMPXCHG16B, which faults on a
//     read-only mapping.
//   - 32 bytes (LongDoubleComplex), and complex elements that are not aligned to
//     their size, though to that of their parts as in C: a table of spin locks
//     shared by all users of the package in the process. Exclusion holds between
//     operations of that one datatype on the same element, in this process: not
//     against another process that maps the same memory.
//
// The lock table is keyed by the offset inside a 4 KiB page, not by the whole
// address, so the same bytes mapped twice still meet at the same lock.
//
// Bytes are copied word by word ([WriteBytes], [ReadBytes]): 8 bytes at a multiple of 8
// at once, and the part of such a word at either end at once as well, by exchanging the
// word around it. So elements of up to 8 bytes are never torn by a copy; the halves of
// longer ones may be.
//
// An operation that does not change the bytes (a failed compare, a minimum that
// stands) does not store. The assembly for 16 bytes is invisible to the race
// detector: it reports no false races, and sees no synchronisation there.
//
// # Arithmetic
//
// Integers wrap. Floating-point comparison is numeric, as fi_atomic(3) words it:
// -0 equals +0 and a NaN is unequal to everything and never a minimum or
// maximum. All rounding is to nearest, ties to even. LongDouble is the x87
// 80-bit format in 16 bytes, computed in software on every architecture; the
// six padding bytes of a computed value are zero, and are ignored by
// comparisons. Float16 and BFloat16 round once from a float64 intermediate;
// Float8E4M3 and Float8E5M2 follow the OCP 8-bit floating point specification
// without saturation: an overflow gives NaN (E4M3) or infinity (E5M2).
// Read, Write and the swaps copy bits unchanged.
//
// Memory and operands are little-endian, as on the wire. The package does not compile for
// big-endian machines. amd64 and arm64 (Armv8.1 or newer) exchange 16 bytes themselves;
// elsewhere locks do.
package atomic
