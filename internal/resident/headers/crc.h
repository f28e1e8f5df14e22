/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32C, 16 bytes at a time (slicing by 16): half of the lookups do not wait for the state
 * before, which is what eight at a time are slow for. The loader computes the table.
 */
#pragma once

#include "kernel.h"

/* table[k][v]: the state after byte v and k zero bytes. */
volatile const __u32 crc_table[16][256] = {};

/* The entry of a table for the byte of a number that is this many bits up. */
static __always_inline __u32 crc_entry(__u32 table, __u64 word, __u32 up)
{
	__u64 at = (up < 2 ? word << 2 : word >> (up - 2)) & 0x3fc; /* bytes */

	return *(volatile const __u32 *)((volatile const __u8 *)crc_table[table] + at);
}

/* The entries for the eight bytes of a word, behind which there are so many others. */
static __always_inline __u32 crc_entries(__u32 behind, __u64 word)
{
	return crc_entry(behind + 7, word, 0) ^ crc_entry(behind + 6, word, 8) ^
	       crc_entry(behind + 5, word, 16) ^ crc_entry(behind + 4, word, 24) ^
	       crc_entry(behind + 3, word, 32) ^ crc_entry(behind + 2, word, 40) ^
	       crc_entry(behind + 1, word, 48) ^ crc_entry(behind, word, 56);
}

/* The state after 16, 8, 4, 2 bytes more, and one. */
static __always_inline __u32 crc_16(__u32 crc, __u64 first, __u64 second)
{
	return crc_entries(0, second) ^ crc_entries(8, first ^ crc);
}

static __always_inline __u32 crc_8(__u32 crc, __u64 word)
{
	return crc_entries(0, word ^ crc);
}

static __always_inline __u32 crc_4(__u32 crc, __u32 half)
{
	crc ^= half;
	return crc_entry(3, crc, 0) ^ crc_entry(2, crc, 8) ^ crc_entry(1, crc, 16) ^ crc_entry(0, crc, 24);
}

static __always_inline __u32 crc_2(__u32 crc, __u16 pair)
{
	crc ^= pair;
	return crc_entry(1, crc, 0) ^ crc_entry(0, crc, 8) ^ crc >> 16;
}

static __always_inline __u32 crc_1(__u32 crc, __u8 byte)
{
	crc ^= byte;
	return crc_entry(0, crc, 0) ^ crc >> 8;
}
