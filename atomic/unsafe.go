// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"sync/atomic"
	"unsafe"
)

// All memory access of the package goes through this file: Go code cannot do
// atomics on bytes of a slice otherwise. Pointers are always derived from a
// bounds-checked slice element, and live only inside one call.

// sizeOf is the size of N in bytes; a constant in each instantiation.
func sizeOf[N any]() int {
	var n N
	return int(unsafe.Sizeof(n))
}

// at returns the address of the target element at byte offset i.
func at(b []byte, i int) unsafe.Pointer { return unsafe.Pointer(&b[i]) }

// elementAt returns the address of the element at byte offset at, which lies inside as
// a whole.
func elementAt[T hotInt](b []byte, at uint32) unsafe.Pointer {
	i := int(at)
	_ = &b[i+sizeOf[T]()-1] // the last byte lies inside, too; it is not read
	return unsafe.Pointer(&b[i])
}

// Touch reads from mem at each of the byte offsets and does nothing with it: a prefetch.
// A locked instruction waits for its cache line alone; plain loads of many lines overlap.
// It reads the aligned four bytes around each offset, and panics if they are not all in
// mem, which is aligned itself.
func Touch(mem []byte, offsets []uint32) {
	for _, at := range offsets {
		i := int(at) &^ 3
		_ = mem[i+3]                                          // the last byte lies inside, too
		atomic.LoadUint32((*uint32)(unsafe.Pointer(&mem[i]))) // never optimised away
	}
}

// misalignment is the distance in bytes of b's start above a multiple of align,
// a power of two.
func misalignment(b []byte, align int) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
}

// get reads an element at any alignment, not atomically. A byte array has
// alignment 1, so the compiler emits loads that are fit for that.
func get[N any](b []byte, i int) (n N) {
	p := unsafe.Pointer(&n)
	switch unsafe.Sizeof(n) {
	case 1:
		*(*[1]byte)(p) = [1]byte(b[i:])
	case 2:
		*(*[2]byte)(p) = [2]byte(b[i:])
	case 4:
		*(*[4]byte)(p) = [4]byte(b[i:])
	case 8:
		*(*[8]byte)(p) = [8]byte(b[i:])
	case 16:
		*(*[16]byte)(p) = [16]byte(b[i:])
	case 32:
		*(*[32]byte)(p) = [32]byte(b[i:])
	}
	return n
}

// put writes an element at any alignment, not atomically.
func put[N any](b []byte, i int, n N) {
	p := unsafe.Pointer(&n)
	switch unsafe.Sizeof(n) {
	case 1:
		*(*[1]byte)(b[i:]) = *(*[1]byte)(p)
	case 2:
		*(*[2]byte)(b[i:]) = *(*[2]byte)(p)
	case 4:
		*(*[4]byte)(b[i:]) = *(*[4]byte)(p)
	case 8:
		*(*[8]byte)(b[i:]) = *(*[8]byte)(p)
	case 16:
		*(*[16]byte)(b[i:]) = *(*[16]byte)(p)
	case 32:
		*(*[32]byte)(b[i:]) = *(*[32]byte)(p)
	}
}

// apply replaces the element at p by f(element, b, c), atomically, and returns
// what it replaced.
func apply[N comparable](p unsafe.Pointer, b, c N, f update[N]) N {
	size := unsafe.Sizeof(b)
	if size == 32 || size == 16 && !native16 || uintptr(p)&(size-1) != 0 {
		return applyLocked(p, b, c, f)
	}
	for {
		old := load[N](p)
		n := f(old, b, c)
		if n == old || cas(p, old, n) {
			return old
		}
	}
}

// applyLocked is apply for elements that the CPU cannot exchange: those of 32
// bytes, and complex ones that are aligned as their parts alone. Words of 8 bytes,
// or 4, are still stored atomically, for the sake of readers that look without
// the lock, and of the race detector.
func applyLocked[N comparable](p unsafe.Pointer, b, c N, f update[N]) (old N) {
	l := lockOf(uintptr(p))
	l.lock()
	copyWords[N](unsafe.Pointer(&old), p)
	if n := f(old, b, c); n != old {
		copyWords[N](p, unsafe.Pointer(&n))
	}
	l.unlock()
	return old
}

// copyWords copies an element of at least 8 bytes, each word atomically. Words have
// 8 bytes, but 4 in an element of 8, which would be exchanged at once if it were
// aligned to more.
func copyWords[N any](to, from unsafe.Pointer) {
	size := sizeOf[N]()
	if size == 8 {
		for i := 0; i < size; i += 4 {
			atomic.StoreUint32((*uint32)(unsafe.Add(to, i)), atomic.LoadUint32((*uint32)(unsafe.Add(from, i))))
		}
		return
	}
	for i := 0; i < size; i += 8 {
		atomic.StoreUint64((*uint64)(unsafe.Add(to, i)), atomic.LoadUint64((*uint64)(unsafe.Add(from, i))))
	}
}

// load reads an element of 1 to 16 bytes atomically.
func load[N any](p unsafe.Pointer) (n N) {
	q := unsafe.Pointer(&n)
	switch unsafe.Sizeof(n) {
	case 1:
		w, shift := around(p)
		*(*uint8)(q) = uint8(atomic.LoadUint32(w) >> shift)
	case 2:
		w, shift := around(p)
		*(*uint16)(q) = uint16(atomic.LoadUint32(w) >> shift)
	case 4:
		*(*uint32)(q) = atomic.LoadUint32((*uint32)(p))
	case 8:
		*(*uint64)(q) = atomic.LoadUint64((*uint64)(p))
	case 16:
		lo, hi := load128(p)
		*(*[2]uint64)(q) = [2]uint64{lo, hi}
	}
	return n
}

// cas replaces old by n at p, elements of 1 to 16 bytes, if old is there.
func cas[N any](p unsafe.Pointer, old, n N) bool {
	o, q := unsafe.Pointer(&old), unsafe.Pointer(&n)
	switch unsafe.Sizeof(old) {
	case 1:
		return casPart(p, uint32(*(*uint8)(o)), uint32(*(*uint8)(q)), 0xff)
	case 2:
		return casPart(p, uint32(*(*uint16)(o)), uint32(*(*uint16)(q)), 0xffff)
	case 4:
		return atomic.CompareAndSwapUint32((*uint32)(p), *(*uint32)(o), *(*uint32)(q))
	case 8:
		return atomic.CompareAndSwapUint64((*uint64)(p), *(*uint64)(o), *(*uint64)(q))
	case 16:
		x, y := *(*[2]uint64)(o), *(*[2]uint64)(q)
		return cas128(p, x[0], x[1], y[0], y[1])
	}
	return false
}

// words64 views aligned bytes, a multiple of 8, as words.
func words64(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// betweenPairs reports whether words begin in the middle of 16 aligned bytes.
func betweenPairs(w []uint64) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(w)))&8 != 0 }

// wordAround returns the aligned word of 8 bytes that holds the first byte of b, and how
// far to shift it right to have that byte lowest. An aligned word never leaves the page.
func wordAround(b []byte) (word *uint64, shift int) {
	in := misalignment(b, 8)
	return (*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -in)), 8 * in
}

// around returns the aligned 32-bit word that holds the byte at p, and how far
// to shift it right to have that byte lowest.
func around(p unsafe.Pointer) (w *uint32, shift uint) {
	in := uintptr(p) & 3
	return (*uint32)(unsafe.Add(p, -int(in))), uint(in) * 8
}

// casPart is a compare-and-swap of the part of a word that mask (unshifted)
// covers. It fails also when a neighbour changed meanwhile; the caller retries.
func casPart(p unsafe.Pointer, old, n, mask uint32) bool {
	w, shift := around(p)
	have := atomic.LoadUint32(w)
	rest := have &^ (mask << shift)
	return atomic.CompareAndSwapUint32(w, rest|old<<shift, rest|n<<shift)
}

// The hot functions are sync/atomic for any of the hot element types, small
// enough to be inlined; the branch is decided at compile time.

func hotLoad[T hotInt](p unsafe.Pointer) T {
	if sizeOf[T]() == 8 {
		return T(atomic.LoadUint64((*uint64)(p)))
	}
	return T(atomic.LoadUint32((*uint32)(p)))
}

func hotCAS[T hotInt](p unsafe.Pointer, old, n T) bool {
	if sizeOf[T]() == 8 {
		return atomic.CompareAndSwapUint64((*uint64)(p), uint64(old), uint64(n))
	}
	return atomic.CompareAndSwapUint32((*uint32)(p), uint32(old), uint32(n))
}

func hotSwap[T hotInt](p unsafe.Pointer, n T) T {
	if sizeOf[T]() == 8 {
		return T(atomic.SwapUint64((*uint64)(p), uint64(n)))
	}
	return T(atomic.SwapUint32((*uint32)(p), uint32(n)))
}

func hotAdd[T hotInt](p unsafe.Pointer, b T) T {
	if sizeOf[T]() == 8 {
		return T(atomic.AddUint64((*uint64)(p), uint64(b)))
	}
	return T(atomic.AddUint32((*uint32)(p), uint32(b)))
}

func hotOr[T hotInt](p unsafe.Pointer, b T) T {
	if sizeOf[T]() == 8 {
		return T(atomic.OrUint64((*uint64)(p), uint64(b)))
	}
	return T(atomic.OrUint32((*uint32)(p), uint32(b)))
}

func hotAnd[T hotInt](p unsafe.Pointer, b T) T {
	if sizeOf[T]() == 8 {
		return T(atomic.AndUint64((*uint64)(p), uint64(b)))
	}
	return T(atomic.AndUint32((*uint32)(p), uint32(b)))
}
