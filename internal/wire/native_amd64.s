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
	CMPB   ·method(SB), $1
	JEQ    products
	JHI    wide

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

// Products sum 64 bytes at a time, in four sums, where CRC32 is slow: on Zen 1 they are 1.7
// times as fast as three streams.
#define FOLD(SUM, TMP) \
	MOVO      SUM, TMP;        \
	PCLMULQDQ $0x00, X8, TMP;  \
	PCLMULQDQ $0x11, X8, SUM;  \
	PXOR      TMP, SUM

#define NEXT(AT, SUM, TMP) \
	FOLD(SUM, TMP);            \
	MOVOU     AT(SI), TMP;     \
	PXOR      TMP, SUM

products:
	CMPQ  CX, $128
	JB    words
	MOVOU ·folds+16(SB), X8
	MOVQ  AX, X4
	MOVOU (SI), X0
	PXOR  X4, X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	JMP   summed

block:
	NEXT(0, X0, X4)
	NEXT(16, X1, X5)
	NEXT(32, X2, X6)
	NEXT(48, X3, X7)

summed:
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  block

	// 64 bytes become 16, and these a state.
	MOVOU ·folds+32(SB), X8
	FOLD(X0, X4)
	PXOR  X0, X2
	FOLD(X1, X5)
	PXOR  X1, X3
	MOVOU ·folds+48(SB), X8
	FOLD(X2, X6)
	PXOR  X2, X3
	MOVQ   X3, BX
	PEXTRQ $1, X3, DI
	XORL   AX, AX
	CRC32Q BX, AX
	CRC32Q DI, AX
	JMP    words

// Of each 248 bytes of a long frame, products sum 128 and three streams 120, five words
// each, at the same time: they take different units of the CPU, and together they are 1.7
// times as fast as either alone (Zen 3). The products' part comes first.
#define FOLD2(K, FROM, TO, TMP) \
	VPCLMULQDQ $0x00, K, FROM, TMP;    \
	VPCLMULQDQ $0x11, K, FROM, FROM;   \
	VPXOR      FROM, TMP, TMP;         \
	VPXOR      TMP, TO, TO

#define NEXT2(AT, SUM, TMP) \
	VPCLMULQDQ $0x00, Y8, SUM, TMP;    \
	VPCLMULQDQ $0x11, Y8, SUM, SUM;    \
	VPXOR      AT(SI), TMP, TMP;       \
	VPXOR      TMP, SUM, SUM

#define WORDS(AT) \
	CRC32Q AT(R13), R9;          \
	CRC32Q AT(R13)(R11*1), R10;  \
	CRC32Q AT(R13)(R11*2), R12

wide:
	CMPQ           CX, $744
	JB             streams
	VBROADCASTI128 ·folds(SB), Y8
	MOVQ           CX, DI
	SHRQ           $3, DI
	IMULQ          $33826, DI      // n = CX / 248, for CX below 2^17
	SHRQ           $20, DI
	CMPQ           DI, $40         // as powers has it
	JBE            begin
	MOVQ           $40, DI

begin:
	IMUL3Q  $248, DI, BX
	SUBQ    BX, CX
	MOVQ    DI, R13
	SHLQ    $7, R13
	ADDQ    SI, R13
	LEAQ    (DI)(DI*4), R11
	SHLQ    $3, R11              // the length of a stream
	XORL    R9, R9
	XORL    R10, R10
	XORL    R12, R12
	VMOVD   AX, X0
	VPXOR   (SI), Y0, Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	JMP     five

fold:
	NEXT2(0, Y0, Y4)
	NEXT2(32, Y1, Y5)
	NEXT2(64, Y2, Y6)
	NEXT2(96, Y3, Y7)

five:
	WORDS(0)
	WORDS(8)
	WORDS(16)
	WORDS(24)
	WORDS(32)
	ADDQ $128, SI
	ADDQ $40, R13
	DECQ DI
	JNZ  fold

	// The products' 128 bytes become 16, and these a state.
	VBROADCASTI128 ·folds+16(SB), Y8
	FOLD2(Y8, Y0, Y2, Y4)
	FOLD2(Y8, Y1, Y3, Y5)
	VBROADCASTI128 ·folds+32(SB), Y8
	FOLD2(Y8, Y2, Y3, Y6)
	VMOVDQU        ·folds+48(SB), X8
	VEXTRACTI128   $1, Y3, X1
	FOLD2(X8, X3, X1, X4)
	VMOVQ          X1, BX
	VPEXTRQ        $1, X1, DI
	VZEROUPPER
	XORL           AX, AX
	CRC32Q         BX, AX
	CRC32Q         DI, AX

	// It has to advance over three streams, the first one's over two, the second one's
	// over one.
	LEAQ      (R11)(R11*2), BX
	MOVQ      AX, X0
	MOVQ      (R8)(BX*1), X1
	PCLMULQDQ $0, X1, X0
	MOVQ      R9, X2
	MOVQ      (R8)(R11*2), X3
	PCLMULQDQ $0, X3, X2
	PXOR      X2, X0
	MOVQ      R10, X4
	MOVQ      (R8)(R11*1), X5
	PCLMULQDQ $0, X5, X4
	PXOR      X4, X0
	MOVQ      X0, BX
	XORL      AX, AX
	CRC32Q    BX, AX
	XORL      R12, AX
	LEAQ      (R13)(R11*2), SI
	JMP       wide

// func cpuid(leaf uint32) (eax, ebx, ecx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	RET
