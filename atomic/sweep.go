// SPDX-License-Identifier: Apache-2.0

package atomic

// Sweep applies one operation with one operand to many elements of mem, in order:
// those at the given byte offsets. The values from before go to result, unless that is
// empty.
//
// Each offset must leave room for an element in mem, or Sweep panics. The caller
// ensures that the elements are aligned.
type Sweep func(mem []byte, offsets []uint32, operand, result []byte)

// sweeps holds the sweeps by operation and datatype. They serve the forms Base and
// Fetch.
var sweeps [NumOps][NumDatatypes]Sweep

// SweepOf returns the sweep for a triple, or nil when there is none: only the
// most common operations have one, the others apply their kernel to each
// element.
func SweepOf(f Func, op Op, dt Datatype) Sweep {
	if f > Fetch || op >= NumOps || dt >= NumDatatypes {
		return nil
	}
	return sweeps[op][dt]
}

func init() {
	bindSweeps[int32](Int32)
	bindSweeps[uint32](Uint32)
	bindSweeps[int64](Int64)
	bindSweeps[uint64](Uint64)
}

// bindSweeps enters the sweeps of dt. The remark at bindHot about inlining holds
// here as well.
func bindSweeps[T hotInt](dt Datatype) {
	sweeps[Sum][dt] = sweepSum[T]()
	sweeps[Bor][dt] = sweepBor[T]()
	sweeps[Band][dt] = sweepBand[T]()
}

//go:noinline
func sweepSum[T hotInt]() Sweep {
	return func(mem []byte, offsets []uint32, operand, result []byte) {
		b := get[T](operand, 0)
		for _, at := range offsets {
			sum := hotAdd(elementAt[T](mem, at), b)
			if len(result) >= sizeOf[T]() {
				put(result, 0, sum-b)
				result = result[sizeOf[T]():]
			}
		}
	}
}

//go:noinline
func sweepBor[T hotInt]() Sweep {
	return func(mem []byte, offsets []uint32, operand, result []byte) {
		b := get[T](operand, 0)
		for _, at := range offsets {
			old := hotOr(elementAt[T](mem, at), b)
			if len(result) >= sizeOf[T]() {
				put(result, 0, old)
				result = result[sizeOf[T]():]
			}
		}
	}
}

//go:noinline
func sweepBand[T hotInt]() Sweep {
	return func(mem []byte, offsets []uint32, operand, result []byte) {
		b := get[T](operand, 0)
		for _, at := range offsets {
			old := hotAnd(elementAt[T](mem, at), b)
			if len(result) >= sizeOf[T]() {
				put(result, 0, old)
				result = result[sizeOf[T]():]
			}
		}
	}
}
