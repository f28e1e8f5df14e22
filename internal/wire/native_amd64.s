// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The checksum field lies at 30, behind 3 * 8 + 4 + 2 bytes.

// func checksumNative(frame []byte) uint32
TEXT ·checksumNative(SB), NOSPLIT, $0-28
	MOVQ   frame_base+0(FP), SI
	MOVQ   frame_len+8(FP), CX
	MOVL   $-1, AX
	XORL   DX, DX
	CRC32Q 0(SI), AX
	CRC32Q 8(SI), AX
	CRC32Q 16(SI), AX
	CRC32L 24(SI), AX
	CRC32W 28(SI), AX
	CRC32L DX, AX           // the field, as zero
	ADDQ   $34, SI
	SUBQ   $34, CX
	LEAQ   ·powers(SB), R8

// Three streams of n words each, n at most 64: an instruction takes three cycles, and one
// can begin in each. For less than 192 bytes a single stream is as fast.
streams:
	CMPQ    CX, $192
	JB      words
	MOVQ    CX, DI
	IMULQ   $43691, DI       // n = CX / 24, for CX below 2^17
	SHRQ    $20, DI
	CMPQ    DI, $64
	JBE     few
	MOVQ    $64, DI

few:
	LEAQ    (DI*8), R11
	LEAQ    (R11)(R11*2), BX
	SUBQ    BX, CX
	XORL    R9, R9
	XORL    R10, R10

triple:
	CRC32Q  (SI), AX
	CRC32Q  (SI)(R11*1), R9
	CRC32Q  (SI)(R11*2), R10
	ADDQ    $8, SI
	DECQ    DI
	JNZ     triple

	// The first state has to advance over 2n words, the second one over n.
	LEAQ      (SI)(R11*2), SI
	MOVQ      AX, X0
	MOVQ      (R8)(R11*2), X1
	PCLMULQDQ $0, X1, X0
	MOVQ      R9, X2
	MOVQ      (R8)(R11*1), X3
	PCLMULQDQ $0, X3, X2
	PXOR      X2, X0
	MOVQ      X0, BX
	XORL      AX, AX
	CRC32Q    BX, AX
	XORL      R10, AX
	JMP       streams

words:
	CMPQ   CX, $8
	JB     rest
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JMP    words

rest:
	TESTQ  CX, CX
	JZ     done
	CRC32B (SI), AX
	INCQ   SI
	DECQ   CX
	JMP    rest

done:
	NOTL AX
	MOVL AX, ret+24(FP)
	RET
