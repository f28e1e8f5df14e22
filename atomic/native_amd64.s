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

// func storePairs(to []uint64, from []byte)
TEXT ·storePairs(SB), NOSPLIT, $0-48
	MOVQ to_base+0(FP), DI
	MOVQ to_len+8(FP), CX
	MOVQ from_base+24(FP), SI

store:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVO  X0, (DI)
	MOVO  X1, 16(DI)
	MOVO  X2, 32(DI)
	MOVO  X3, 48(DI)
	ADDQ  $64, SI
	ADDQ  $64, DI
	SUBQ  $8, CX
	JNZ   store
	RET

// func loadPairs(to []byte, from []uint64)
TEXT ·loadPairs(SB), NOSPLIT, $0-48
	MOVQ to_base+0(FP), DI
	MOVQ from_base+24(FP), SI
	MOVQ from_len+32(FP), CX

load:
	MOVO  (SI), X0
	MOVO  16(SI), X1
	MOVO  32(SI), X2
	MOVO  48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	ADDQ  $64, SI
	ADDQ  $64, DI
	SUBQ  $8, CX
	JNZ   load
	RET
