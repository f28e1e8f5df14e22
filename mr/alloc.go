// SPDX-License-Identifier: Apache-2.0

package mr

import "fmt"

// Huge describes what Alloc does about huge pages: fewer TLB misses for random access to
// large regions.
type Huge uint8

// The choices.
const (
	HugeAuto    Huge = iota // reserved huge pages, else transparent ones, else small pages; from HugePageSize on
	HugeNever               // small pages
	HugeRequire             // reserved huge pages or an error
)

// String returns the choice as a word.
func (h Huge) String() string {
	if names := [...]string{"auto", "never", "require"}; int(h) < len(names) {
		return names[h]
	}
	return fmt.Sprintf("Huge(%d)", uint8(h))
}

// HugePageSize is the size in bytes of the huge pages that Alloc asks for.
const HugePageSize = 2 << 20

// AllocOptions are the choices of Alloc; the zero value is sensible.
type AllocOptions struct {
	Huge     Huge
	Populate bool // touch all pages now, so that no operation meets a page fault
}

// maxSize leaves room for rounding up, and keeps offsets far from overflow; no machine
// can map so much.
const maxSize = 1 << 47

func checkSize(size int) error {
	if size <= 0 || size > maxSize {
		return failed("%w: %d bytes, want 1 to 2^47", ErrSize, size)
	}
	return nil
}

// roundUp rounds n up to a multiple of unit, a power of two.
func roundUp(n, unit int) int { return (n + unit - 1) &^ (unit - 1) }
