/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of the arena: each is a power of two of units long, and halves of a block that are
 * both free become one again. It belongs to whoever holds the domain's lock.
 */
#ifndef XDPFAB_ARENA_H
#define XDPFAB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARENA_UNIT_LOG = 8, ARENA_ORDERS = 24 }; /* of units of 256 bytes: up to 2 GiB */

struct arena {
	unsigned orders;
	uint64_t *free[ARENA_ORDERS];	/* bit i is set if block i of that order is free */
	size_t words[ARENA_ORDERS];	/* in use of free */
	size_t hint[ARENA_ORDERS];	/* no word before it has a bit set */
};

/* Makes an arena of the largest power of two of bytes, at least one unit. Returns false
 * without memory. */
bool arena_make(struct arena *a, size_t bytes);
void arena_free(struct arena *a);

size_t arena_largest(const struct arena *a);

/* Takes a block of at least n bytes, and returns false if none is free. */
bool arena_take(struct arena *a, size_t n, uint32_t *offset);

/* Gives back a block of n bytes. */
void arena_put(struct arena *a, uint32_t offset, size_t n);

#endif
