/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether a frame is this program's, and whether an operation of it may run: the region that
 * it names, the rights, the bounds, and the room for what it returns.
 */
#pragma once

#include "records.h"

/* wire.Status */
enum status {
	STATUS_OK,
	STATUS_NO_KEY,
	STATUS_NO_ACCESS,
	STATUS_OUT_OF_BOUNDS,
	STATUS_MISALIGNED,
	STATUS_BAD_COUNT = 6,
	STATUS_NOT_EXECUTED = 8,
	STATUS_STALE = 9,
};

/* Finds the region of the record at hand; records of one frame mostly have one. */
static __always_inline int find(struct scratch *s)
{
	__u64 key = s->rec.key;
	struct region *r;

	if (s->found && s->region_key == key)
		return 1;
	r = bpf_map_lookup_elem(&regions, &key);
	s->found = r != 0;
	if (!r)
		return 0;
	s->region = *r;
	s->region_key = key;
	return 1;
}

static long check_record(__u32 i, struct scratch **of)
{
	struct scratch *s = *of;

	if (!s->left)
		return 1;
	if (!parse(s) || !find(s)) {
		s->left = OPS_MAX + 1; /* more than a frame has: refused */
		return 1;
	}
	return 0;
}

/* Whether this program executes all operations of the frame. */
static __always_inline int executable(struct scratch *s)
{
	struct scratch *of = s;

	rewind(s);
	s->found = 0;
	if (check_record(0, &of))
		return 0;
	s->whole = !s->left;
	if (s->left)
		bpf_loop(OPS_MAX, check_record, &of, 0);
	return !s->left && s->pos <= s->length && padded_well(s, s->pos);
}

/* Bytes that are kept for the failure of all operations behind the first n. */
static __always_inline __u32 reserve(const struct scratch *s, __u32 n)
{
	__u32 failures = s->failed + s->h.ops - n;

	return failures ? 4 + 2 * failures : 0;
}

/* Whether an operation that returns n bytes, the last of the first so many, has room. */
static __always_inline int has_room(const struct scratch *s, __u64 n, __u32 ops)
{
	__u64 end = s->values + ((n + 3) & ~3ull);

	return end + reserve(s, ops) <= s->room;
}

/* Finds the region of the record at hand, or says why it must not be touched. */
static __always_inline enum status admit(struct scratch *s)
{
	const struct record *r = &s->rec;
	const struct region *g = &s->region;
	__u32 need = r->verb == VERB_ATOMIC ? REMOTE_WRITE :
		     r->op == OP_READ	    ? REMOTE_READ :
					      REMOTE_READ | REMOTE_WRITE;

	if (!find(s))
		return STATUS_NO_KEY;
	if (g->auth != s->auth)
		return STATUS_NO_ACCESS;
	if (r->incarnation && r->incarnation != g->incarnation)
		return STATUS_STALE;
	return (g->access & need) == need ? STATUS_OK : STATUS_NO_ACCESS;
}

/* Where the operation at hand begins in the region, or why it must not run. */
static __always_inline enum status resolve(struct scratch *s)
{
	const struct record *r = &s->rec;
	const struct region *g = &s->region;
	__u64 total = (__u64)r->total * r->size;
	enum status status = admit(s);

	if (status != STATUS_OK)
		return status;
	s->at = r->offset - g->base;
	if (total > g->length || s->at > g->length - total)
		return STATUS_OUT_OF_BOUNDS;
	if (s->at & (r->size - 1))
		return STATUS_MISALIGNED;
	return STATUS_OK;
}

static long resolve_next(__u32 i, struct scratch **of)
{
	struct scratch *s = *of;

	if (i >= s->rec.run)
		return 1;
	s->rec.offset = in32(s, s->rec.next + i * s->rec.stride);
	s->unresolved = resolve(s) != STATUS_OK;
	return s->unresolved;
}

/* Whether none of the operations of the run at hand will be refused. */
__noinline int resolves(struct scratch *s)
{
	struct scratch *of = s;

	if (!s)
		return 0;
	bpf_loop(OPS_MAX, resolve_next, &of, 0);
	return !s->unresolved;
}

/* Whether the run at hand, which has just been read, is executed at once: then its values
 * need room together, and otherwise one by one, each with room for the failure of those
 * behind it. The two differ only if values of four bytes end the answer, to the last byte:
 * any other value is longer than what its failure takes. */
static __always_inline int at_once(struct scratch *s)
{
	const struct record *r = &s->rec;
	__u32 n = r->run * r->size, ops = s->index + r->run;

	if (!has_room(s, n, ops))
		return 0;
	if (r->size > 4 || ops < s->h.ops || s->failed || s->values + n + 2 <= s->room)
		return 1;
	return resolves(s);
}
