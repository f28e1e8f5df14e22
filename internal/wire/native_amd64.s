// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The checksum field lies at 30, behind 3 * 8 + 4 + 2 bytes.

// func checksumSSE42(frame []byte) uint32
TEXT ·checksumSSE42(SB), NOSPLIT, $0-28
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
