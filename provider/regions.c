/* SPDX-License-Identifier: Apache-2.0 */

#include "regions.h"

#include <errno.h>
#include <stdlib.h>

#include "memory.h"

bool region_init(struct region *r, const struct iovec *pieces, size_t count)
{
	uint64_t length = 0;

	if (count > REGION_PIECES)
		return false;
	r->count = (uint32_t)count;
	r->sparse = false;
	for (size_t i = 0; i < count; i++) {
		if (pieces[i].iov_len > UINT64_MAX - length)
			return false;
		length += pieces[i].iov_len;
		r->pieces[i].at = (uintptr_t)pieces[i].iov_base;
		r->pieces[i].length = pieces[i].iov_len;
	}
	r->length = length;
	for (size_t i = 0; i < count && !r->sparse; i++)
		r->sparse = !memory_mapped(r->pieces[i].at, r->pieces[i].length, r->access & REGION_READ,
		                           r->access & REGION_WRITE);
	return true;
}

/* home returns the slot at which the search for a key begins. Programs take pointers and
 * small numbers for keys; a product spreads both. */
static size_t home(const struct regions *t, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15) >> 32) & (t->size - 1);
}

/* slot_of returns the slot that has a key, or the free one where it would be. There is a
 * free one, since at most half are in use. */
static size_t slot_of(const struct regions *t, uint64_t key)
{
	size_t i = home(t, key);

	while (t->slots[i] && t->slots[i]->key != key)
		i = (i + 1) & (t->size - 1);
	return i;
}

struct region *regions_find(const struct regions *t, uint64_t key)
{
	return t->size ? t->slots[slot_of(t, key)] : NULL;
}

static int grow(struct regions *t)
{
	struct regions more = {.size = t->size ? 2 * t->size : 64, .n = t->n};

	more.slots = calloc(more.size, sizeof *more.slots);
	if (!more.slots)
		return ENOMEM;
	for (size_t i = 0; i < t->size; i++)
		if (t->slots[i])
			more.slots[slot_of(&more, t->slots[i]->key)] = t->slots[i];
	free(t->slots);
	*t = more;
	return 0;
}

int regions_add(struct regions *t, struct region *r)
{
	if (regions_find(t, r->key))
		return EEXIST;
	if (2 * (t->n + 1) > t->size && grow(t))
		return ENOMEM;
	t->slots[slot_of(t, r->key)] = r;
	t->n++;
	return 0;
}

void regions_remove(struct regions *t, uint64_t key)
{
	const size_t mask = t->size - 1;
	size_t hole;

	if (!regions_find(t, key))
		return;
	hole = slot_of(t, key);
	t->slots[hole] = NULL;
	t->n--;
	/* Those behind it that could have been there move up, or they would not be found. */
	for (size_t i = (hole + 1) & mask; t->slots[i]; i = (i + 1) & mask) {
		if (((i - home(t, t->slots[i]->key)) & mask) < ((i - hole) & mask))
			continue;
		t->slots[hole] = t->slots[i];
		t->slots[i] = NULL;
		hole = i;
	}
}

void regions_release(struct regions *t)
{
	free(t->slots);
	*t = (struct regions){NULL, 0, 0};
}
