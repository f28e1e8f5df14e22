// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func cas128(p unsafe.Pointer, oldLo, oldHi, newLo, newHi uint64) (swapped bool)
TEXT ·cas128(SB), NOSPLIT, $0-41
	MOVQ p+0(FP), DI
	MOVQ oldLo+8(FP), AX
	MOVQ oldHi+16(FP), DX
	MOVQ newLo+24(FP), BX
	MOVQ newHi+32(FP), CX
	LOCK
	CMPXCHG16B (DI)
	SETEQ swapped+40(FP)
	RET

// func loadMOVDQA(p unsafe.Pointer) (lo, hi uint64)
// MOVO is the assembler's name of MOVDQA.
TEXT ·loadMOVDQA(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), DI
	MOVO (DI), X0
	MOVQ X0, lo+8(FP)
	PSRLDQ $8, X0
	MOVQ X0, hi+16(FP)
	RET

// func loadCX16(p unsafe.Pointer) (lo, hi uint64)
TEXT ·loadCX16(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), DI
	XORL AX, AX
	XORL DX, DX
	XORL BX, BX
	XORL CX, CX
	LOCK
	CMPXCHG16B (DI)
	MOVQ AX, lo+8(FP)
	MOVQ DX, hi+16(FP)
	RET
