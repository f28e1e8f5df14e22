/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements in memory that others use at the same time. An element is exchanged by the
 * CPU, so every access by atomics of the CPU excludes it, in this process and in others;
 * but for those that the CPU cannot exchange: elements of 32 bytes, complex ones that are
 * aligned as their parts alone, and of 16 bytes where there is no CMPXCHG16B. For these
 * there are locks, so operations of this library exclude each other, and nothing else.
 *
 * An update that does not change the bytes does not store.
 */
#ifndef PROVIDER_WORD_H
#define PROVIDER_WORD_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORD_INLINE static inline __attribute__((always_inline))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

typedef struct {
	u128 lo, hi;
} u256;

/* word_native16 tells whether the CPU exchanges 16 bytes; written at the load of the
 * library, and by tests. */
extern bool word_native16;

WORD_INLINE bool word_misaligned(const void *p, size_t align)
{
	return ((uintptr_t)p & (align - 1)) != 0;
}

/* A lock for every 16 bytes of a page: the same bytes mapped twice have the same lock. */
enum { WORD_LOCKS = 256, WORD_SPINS = 64 };

struct word_lock {
	_Alignas(64) uint32_t held;
};

extern struct word_lock word_locks[WORD_LOCKS];

WORD_INLINE struct word_lock *word_lock(const void *p)
{
	struct word_lock *l = &word_locks[(uintptr_t)p / 16 % WORD_LOCKS];

	for (int spins = 1; __atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE); spins++)
		if (spins % WORD_SPINS == 0)
			sched_yield(); /* the holder needs a processor */
	return l;
}

WORD_INLINE void word_unlock(struct word_lock *l)
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

/* word_copy copies an element of at least 8 bytes whose parts are aligned. The parts have
 * 8 bytes, but 4 in an element of 8, and none of them is torn for those that look without
 * the lock. */
WORD_INLINE void word_copy(void *to, const void *from, size_t size)
{
	if (size == 8)
		for (size_t i = 0; i < 2; i++)
			__atomic_store_n((uint32_t *)to + i,
			                 __atomic_load_n((const uint32_t *)from + i, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
	else
		for (size_t i = 0; i < size / 8; i++)
			__atomic_store_n((uint64_t *)to + i,
			                 __atomic_load_n((const uint64_t *)from + i, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

#if defined(__x86_64__)

/* Assembly, since compilers call libatomic for 16 bytes. Loads do not write, so that they
 * work on read-only pages: an aligned load of 16 bytes is one access where there is AVX,
 * without which word_native16 is false. */
WORD_INLINE u128 word_load_16(const void *p)
{
	uint64_t lo, hi;

	__asm__ volatile("movdqa %2, %%xmm0\n\tmovq %%xmm0, %0\n\tpsrldq $8, %%xmm0\n\tmovq %%xmm0, %1"
	                 : "=r"(lo), "=r"(hi)
	                 : "m"(*(const u128 *)p)
	                 : "xmm0", "memory");
	return (u128)hi << 64 | lo;
}

WORD_INLINE bool word_cas_16(void *p, u128 *old, u128 new)
{
	uint64_t lo = (uint64_t)*old, hi = (uint64_t)(*old >> 64);
	bool swapped;

	__asm__ volatile("lock cmpxchg16b %1"
	                 : "=@ccz"(swapped), "+m"(*(u128 *)p), "+a"(lo), "+d"(hi)
	                 : "b"((uint64_t)new), "c"((uint64_t)(new >> 64))
	                 : "memory");
	*old = (u128)hi << 64 | lo;
	return swapped;
}

#else /* word_native16 is false */

WORD_INLINE u128 word_load_16(const void *p)
{
	(void)p;
	return 0;
}

WORD_INLINE bool word_cas_16(void *p, u128 *old, u128 new)
{
	(void)p, (void)old, (void)new;
	return true;
}

#endif

WORD_INLINE u256 word_load_32(const void *p)
{
	(void)p;
	return (u256){0, 0};
}

WORD_INLINE bool word_cas_32(void *p, u256 *old, u256 new)
{
	(void)p, (void)old, (void)new;
	return true;
}

#define WORD_ACCESS(size, word) \
	WORD_INLINE word word_load_##size(const void *p) \
	{ \
		return __atomic_load_n((const word *)p, __ATOMIC_SEQ_CST); \
	} \
	WORD_INLINE bool word_cas_##size(void *p, word *old, word new) \
	{ \
		return __atomic_compare_exchange_n((word *)p, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	}

WORD_ACCESS(1, uint8_t)
WORD_ACCESS(2, uint16_t)
WORD_ACCESS(4, uint32_t)
WORD_ACCESS(8, uint64_t)

/* word_apply_SIZE replaces the element at p by update(element, b, c), and returns what it
 * replaced; locked says that the CPU cannot exchange it. update is called again after a
 * lost race. word_loop_SIZE does so with count elements in ascending order. operand,
 * compare and result may be NULL, and have any alignment. */
#define WORD_LOOP(size, word, locked) \
	WORD_INLINE word word_apply_##size(void *p, word b, word c, word (*update)(word, word, word)) \
	{ \
		word old, new; \
		if (locked) { \
			struct word_lock *l = word_lock(p); \
			word_copy(&old, p, size); \
			new = update(old, b, c); \
			if (memcmp(&new, &old, size)) \
				word_copy(p, &new, size); \
			word_unlock(l); \
			return old; \
		} \
		old = word_load_##size(p); \
		do \
			new = update(old, b, c); \
		while (memcmp(&new, &old, size) && !word_cas_##size(p, &old, new)); \
		return old; \
	} \
	WORD_INLINE void word_loop_##size(uint8_t *target, const uint8_t *operand, const uint8_t *compare, \
	                                  uint8_t *result, size_t count, word (*update)(word, word, word)) \
	{ \
		for (size_t i = 0; i < count * size; i += size) { \
			word b, c, old; \
			memset(&b, 0, size); \
			memset(&c, 0, size); \
			if (operand) \
				memcpy(&b, operand + i, size); \
			if (compare) \
				memcpy(&c, compare + i, size); \
			old = word_apply_##size(target + i, b, c, update); \
			if (result) \
				memcpy(result + i, &old, size); \
		} \
	}

WORD_LOOP(1, uint8_t, false)
WORD_LOOP(2, uint16_t, false)
WORD_LOOP(4, uint32_t, false)
WORD_LOOP(8, uint64_t, word_misaligned(p, 8))
WORD_LOOP(16, u128, !word_native16 || word_misaligned(p, 16))
WORD_LOOP(32, u256, true)

#endif
