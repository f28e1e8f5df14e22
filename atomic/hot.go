// SPDX-License-Identifier: Apache-2.0

package atomic

// hotInt are the element types whose common operations have loops of their own:
// the general loop calls its update through a pointer, which costs as much as
// the locked instruction itself.
type hotInt interface {
	int32 | uint32 | int64 | uint64
}

// bindHot enters the specialised loops of dt, replacing the general ones.
//
// The makers of loops must not be inlined here: the compiler would copy their
// closures without inlining the element accesses inside, which doubles the time.
func bindHot[T hotInt](dt Datatype) {
	set(Sum, dt, hotSum[T]())
	set(Bor, dt, hotBor[T]())
	set(Band, dt, hotBand[T]())
	set(Bxor, dt, hotXor[T]())
	set(Min, dt, hotMin[T]())
	set(Max, dt, hotMax[T]())
	set(Read, dt, hotRead[T]())
	set(Write, dt, hotWrite[T]())
	set(Cswap, dt, hotCswap[T]())
}

//go:noinline
func hotSum[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			sum := hotAdd(p, b)
			if len(result) != 0 {
				put(result, i, sum-b)
			}
		}
	}
}

// hotOr becomes a single locked instruction where the value before is not
// wanted; hence the two branches. The same goes for hotAnd.
//
//go:noinline
func hotBor[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			if len(result) != 0 {
				put(result, i, hotOr(p, b))
			} else {
				hotOr(p, b)
			}
		}
	}
}

//go:noinline
func hotBand[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			if len(result) != 0 {
				put(result, i, hotAnd(p, b))
			} else {
				hotAnd(p, b)
			}
		}
	}
}

//go:noinline
func hotXor[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			old := hotLoad[T](p)
			for !hotCAS(p, old, old^b) {
				old = hotLoad[T](p)
			}
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}

//go:noinline
func hotMin[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			old := hotLoad[T](p)
			for b < old && !hotCAS(p, old, b) {
				old = hotLoad[T](p)
			}
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}

//go:noinline
func hotMax[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			old := hotLoad[T](p)
			for b > old && !hotCAS(p, old, b) {
				old = hotLoad[T](p)
			}
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}

//go:noinline
func hotRead[T hotInt]() Kernel {
	return func(target, _, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			old := hotLoad[T](at(target, i))
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}

//go:noinline
func hotWrite[T hotInt]() Kernel {
	return func(target, operand, _, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b := at(target, i), get[T](operand, i)
			old := hotSwap(p, b)
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}

//go:noinline
func hotCswap[T hotInt]() Kernel {
	return func(target, operand, compare, result []byte) {
		for i := 0; i+sizeOf[T]() <= len(target); i += sizeOf[T]() {
			p, b, c := at(target, i), get[T](operand, i), get[T](compare, i)
			old := c
			for !hotCAS(p, c, b) {
				// A value other than c is the answer; c itself means that the
				// value changed and came back between the two instructions.
				if old = hotLoad[T](p); old != c {
					break
				}
			}
			if len(result) != 0 {
				put(result, i, old)
			}
		}
	}
}
