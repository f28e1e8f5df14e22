/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32C, eight bytes at a time (slicing by 8). The loader computes the table.
 */
#pragma once

#include "kernel.h"

/* table[k][v]: the state after byte v and k zero bytes. */
volatile const __u32 crc_table[8][256] = {};

static __always_inline __u32 crc_byte(__u32 crc, __u8 b)
{
	return crc_table[0][CUT(crc ^ b, 0xff)] ^ crc >> 8;
}

static __always_inline __u32 crc_word(__u32 crc, __u64 word)
{
	word ^= crc;
	return crc_table[7][word & 0xff] ^ crc_table[6][word >> 8 & 0xff] ^
	       crc_table[5][word >> 16 & 0xff] ^ crc_table[4][word >> 24 & 0xff] ^
	       crc_table[3][word >> 32 & 0xff] ^ crc_table[2][word >> 40 & 0xff] ^
	       crc_table[1][word >> 48 & 0xff] ^ crc_table[0][word >> 56];
}
