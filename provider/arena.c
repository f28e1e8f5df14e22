/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdlib.h>

static unsigned log2_of(size_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

/* The order of blocks that n bytes need. */
static unsigned order(size_t n)
{
	return n <= (size_t)1 << ARENA_UNIT_LOG ? 0 : log2_of(n - 1) + 1 - ARENA_UNIT_LOG;
}

static void set(struct arena *a, unsigned o, size_t i)
{
	a->free[o][i / 64] |= 1ull << i % 64;
	if (i / 64 < a->hint[o])
		a->hint[o] = i / 64;
}

static void unset(struct arena *a, unsigned o, size_t i)
{
	a->free[o][i / 64] &= ~(1ull << i % 64);
}

static bool has(const struct arena *a, unsigned o, size_t i)
{
	return (a->free[o][i / 64] >> i % 64 & 1) != 0;
}

bool arena_make(struct arena *a, size_t bytes)
{
	*a = (struct arena){.orders = log2_of(bytes) + 1 - ARENA_UNIT_LOG};
	if (a->orders > ARENA_ORDERS)
		a->orders = ARENA_ORDERS;
	for (unsigned o = 0; o < a->orders; o++) {
		a->words[o] = (((size_t)1 << (a->orders - 1 - o)) + 63) / 64;
		a->free[o] = calloc(a->words[o], sizeof *a->free[o]);
		if (a->free[o] == NULL) {
			arena_free(a);
			return false;
		}
	}
	set(a, a->orders - 1, 0);
	return true;
}

void arena_free(struct arena *a)
{
	for (unsigned o = 0; o < a->orders; o++)
		free(a->free[o]);
	*a = (struct arena){0};
}

size_t arena_largest(const struct arena *a)
{
	return (size_t)1 << (a->orders - 1 + ARENA_UNIT_LOG);
}

/* Finds a free block of an order. */
static bool find(struct arena *a, unsigned o, size_t *i)
{
	for (size_t w = a->hint[o]; w < a->words[o]; w++) {
		if (a->free[o][w] != 0) {
			a->hint[o] = w;
			*i = w * 64 + (size_t)__builtin_ctzll(a->free[o][w]);
			return true;
		}
	}
	a->hint[o] = a->words[o];
	return false;
}

bool arena_take(struct arena *a, size_t n, uint32_t *offset)
{
	const unsigned want = order(n);
	size_t i;

	for (unsigned o = want; o < a->orders; o++) {
		if (!find(a, o, &i))
			continue;
		unset(a, o, i);
		for (; o > want; o--) { /* the second half stays free */
			i *= 2;
			set(a, o - 1, i + 1);
		}
		*offset = (uint32_t)(i << (want + ARENA_UNIT_LOG));
		return true;
	}
	return false;
}

void arena_put(struct arena *a, uint32_t offset, size_t n)
{
	unsigned o = order(n);
	size_t i = offset >> (o + ARENA_UNIT_LOG);

	for (; o + 1 < a->orders && has(a, o, i ^ 1); o++) {
		unset(a, o, i ^ 1);
		i /= 2;
	}
	set(a, o, i);
}
