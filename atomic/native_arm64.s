// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Go's assembler knows CASP without acquire and release alone, so this is the instruction
// itself: caspal x0, x1, x2, x3, [x8].
#define CASPAL WORD $0x4860fd02

// func cas128(p unsafe.Pointer, oldLo, oldHi, newLo, newHi uint64) (swapped bool)
TEXT ·cas128(SB), NOSPLIT, $0-41
	MOVD p+0(FP), R8
	LDP  oldLo+8(FP), (R0, R1)
	LDP  newLo+24(FP), (R2, R3)
	MOVD R0, R4
	MOVD R1, R5
	CASPAL
	EOR  R4, R0
	EOR  R5, R1
	ORR  R1, R0
	CMP  $0, R0
	CSET EQ, R0
	MOVB R0, swapped+40(FP)
	RET

// func load128(p unsafe.Pointer) (lo, hi uint64)
TEXT ·load128(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R8
	MOVD ZR, R0
	MOVD ZR, R1
	MOVD ZR, R2
	MOVD ZR, R3
	CASPAL
	STP  (R0, R1), lo+8(FP)
	RET
