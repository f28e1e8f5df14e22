/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the program that peers operate on, by key. There is no lock: the caller has
 * one.
 */
#ifndef PROVIDER_REGIONS_H
#define PROVIDER_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	REGION_PIECES = 8,
	REGION_READ = 1, /* FI_REMOTE_READ */
	REGION_WRITE = 2,
};

struct region {
	uint64_t key;
	uint64_t base;   /* offset that names the first byte: 0, or its address */
	uint64_t length; /* of all pieces, bytes; region_init fills it in */
	uint32_t incarnation; /* no two regions have the same */
	uint32_t access;
	bool sparse; /* likewise: it may have holes, so each access looks */
	uint32_t count; /* of pieces */
	struct {
		uintptr_t at;
		size_t length;
	} pieces[REGION_PIECES];
	void *owner;
};

/* region_init sets the pieces of a region whose access is set. One that is not mapped as
 * a whole, with the rights that it grants, is sparse. It returns false if there are too
 * many pieces or they are too long together. */
bool region_init(struct region *r, const struct iovec *pieces, size_t count);

/* A table of regions; zeros are an empty one. */
struct regions {
	struct region **slots;
	size_t size, n; /* slots, a power of two or 0; those in use */
};

/* regions_add returns 0, EEXIST if the key is in use, or ENOMEM. A key that is not in the
 * table is found as NULL, and removed in vain. */
int regions_add(struct regions *t, struct region *r);
struct region *regions_find(const struct regions *t, uint64_t key);
void regions_remove(struct regions *t, uint64_t key);

/* regions_release gives back the memory of the table, not that of the regions. */
void regions_release(struct regions *t);

#endif
