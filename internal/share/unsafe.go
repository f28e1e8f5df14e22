// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"unsafe"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/mr"
)

// The layout is shared with other programs, and with C.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(engine.Entry{})-entryLen]
	_ = [1]struct{}{}[unsafe.Sizeof(engine.Completion{})-completedLen]
	_ = [1]struct{}{}[unsafe.Sizeof(header{})-640]
	_ = [1]struct{}{}[unsafe.Sizeof(mr.Extent{})-extentLen]
	_ = [1]struct{}{}[unsafe.Sizeof(op{})-64] // a cache line, and not of the layout
	_ = [1]struct{}{}[unsafe.Sizeof(record{})-recordLen]
	_ = [1]struct{}{}[unsafe.Sizeof(Admission{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(tallyHeader{})-tallyHeaderLen]
	_ = [1]struct{}{}[unsafe.Sizeof(tallySums{})-tallySumsLen]
)

const extentLen = 24

// parts divides the memory of a segment.
func parts(mem []byte, s Sizes) (*header, []engine.Entry, []engine.Completion, []byte, []byte) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	completions := page + s.Entries*entryLen
	arena := completions + s.Entries*completedLen
	return (*header)(p), unsafe.Slice((*engine.Entry)(unsafe.Add(p, page)), s.Entries),
		unsafe.Slice((*engine.Completion)(unsafe.Add(p, completions)), s.Entries), mem[arena : arena+s.Arena],
		mem[arena+s.Arena : s.Len()]
}

// talliesOf returns tallies in a memory, all of them unused.
func talliesOf(m *mr.Memory) *Tallies {
	p := unsafe.Pointer(unsafe.SliceData(m.Bytes()))
	return &Tallies{mem: m, h: (*tallyHeader)(p),
		sums: unsafe.Slice((*tallySums)(unsafe.Add(p, tallyHeaderLen)), MostTallies)}
}

// placesOf returns the places in an entry.
func placesOf(x *engine.Entry) *places { return (*places)(unsafe.Pointer(&x.Inline)) }

// admissionOf returns the admission in an entry.
func admissionOf(x *engine.Entry) *Admission { return (*Admission)(unsafe.Pointer(&x.Inline)) }

// arrayOf returns the n elements with which a memory begins, and what follows them. The
// memory is aligned for them.
func arrayOf[T any](b []byte, n int) (array []T, rest []byte) {
	var x T
	size := n * int(unsafe.Sizeof(x))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b[:size]))), n), b[size:]
}

// copyHead copies the first cache line of an entry, which is all of a short one. What
// follows stays as it is.
func copyHead(to, from *engine.Entry) {
	*(*[engine.HeadLen]byte)(unsafe.Pointer(to)) = *(*[engine.HeadLen]byte)(unsafe.Pointer(from))
}

// bytesOfRecord returns a record as bytes.
func bytesOfRecord(r *record) []byte { return (*[recordLen]byte)(unsafe.Pointer(r))[:] }

// bytesOf returns extents as bytes.
func bytesOf(x []mr.Extent) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*extentLen)
}
