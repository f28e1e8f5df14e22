// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"fmt"
	"math"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errors that [Apply] wraps. They match errnos too: ErrUnsupported EOPNOTSUPP, the
// others EINVAL.
var (
	// ErrUnsupported: the operation is not defined on the datatype, or not in
	// this function (see [Valid]).
	ErrUnsupported = errno.New("unsupported operation on this datatype", syscall.EOPNOTSUPP)
	// ErrCount: the number of elements is zero or negative.
	ErrCount = errno.New("bad element count", syscall.EINVAL)
	// ErrLength: a buffer is missing or too short for the count.
	ErrLength = errno.New("buffer too short", syscall.EINVAL)
	// ErrAlign: the target is not aligned to the datatype.
	ErrAlign = errno.New("misaligned target", syscall.EINVAL)
)

// Apply performs op on n elements of target, each atomically, and stores the
// values from before in result. It can express every call of fi_atomic(3):
//
//   - operand holds n elements at any alignment; ignored by [Read];
//   - compare holds n elements at any alignment; ignored unless f is [Compare];
//   - result receives n elements at any alignment; ignored if f is [Base].
//
// Buffers may be longer than n elements; the rest is not touched. target must
// start at a multiple of [Datatype.Align]. operand, compare and result must not
// overlap target.
//
// Apply checks everything first. If it returns an error, which wraps
// [ErrUnsupported], [ErrCount], [ErrLength] or [ErrAlign], nothing was done.
func Apply(f Func, op Op, dt Datatype, target, operand, compare, result []byte, n int) error {
	k := KernelOf(f, op, dt)
	if k == nil {
		return fmt.Errorf("xdpfab: %w: %v %v on %v: ask Valid first", ErrUnsupported, f, op, dt)
	}
	if n < 1 {
		return fmt.Errorf("xdpfab: %w: %d: want at least 1", ErrCount, n)
	}
	if n > maxElements {
		return lengthError("target", target, dt, n)
	}
	need := n * dt.Size()
	switch {
	case len(target) < need:
		return lengthError("target", target, dt, n)
	case op != Read && len(operand) < need:
		return lengthError("operand", operand, dt, n)
	case f == Compare && len(compare) < need:
		return lengthError("compare", compare, dt, n)
	case f != Base && len(result) < need:
		return lengthError("result", result, dt, n)
	}
	if off := misalignment(target, dt.Align()); off != 0 {
		return fmt.Errorf("xdpfab: %w: %v needs a multiple of %d, the address is %d above one", ErrAlign, dt,
			dt.Align(), off)
	}
	// To a kernel, an empty slice means that there is none.
	if op == Read {
		operand = nil
	}
	if f != Compare {
		compare = nil
	}
	if f == Base {
		result = nil
	}
	k(target[:need], operand, compare, result)
	return nil
}

// maxElements keeps the byte count of any array from overflowing.
const maxElements = math.MaxInt / 32

func lengthError(name string, b []byte, dt Datatype, n int) error {
	return fmt.Errorf("xdpfab: %w: %s has %d bytes; %d elements of %v need %d each", ErrLength, name, len(b), n, dt,
		dt.Size())
}
