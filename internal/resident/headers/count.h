/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counting what peers do to a region, for the counters that a process has bound to it. What is
 * counted has been applied, and its answer has not left.
 */
#pragma once

#include "check.h"

/* What this program has applied to the region at a place, for the counters of a process.
 * User space maps it. It is no part of what outlives a process, as counters are not. */
enum direction { READS, WRITES, DIRECTIONS };

struct touched {
	__u32 counted; /* user space wants to know */
	__u32 armed; /* and to be told of the next operation */
	struct {
		__u64 ops;
		__u64 bytes;
	} by[DIRECTIONS];
	__u64 pad[3]; /* a cache line for each region */
};

/* By the place of the region's memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_REGIONS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct touched);
} touches SEC(".maps");

/* Wakes user space. What lies there says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a page: see the loader */
} events SEC(".maps");

/* Counts operations like the one at hand, which have been applied to the region at hand, and
 * their bytes. The last step is an exchange: either it finds that user space wants to be told,
 * or user space, which wishes so by an exchange and looks then, finds what has been counted. */
static __always_inline void count_touch(struct scratch *s, __u32 ops, __u64 bytes)
{
	__u32 place = s->region.place;
	struct touched *t = bpf_map_lookup_elem(&touches, &place);
	enum direction d = returns(&s->rec) ? READS : WRITES;

	if (!t || !t->counted)
		return;
	__sync_fetch_and_add(&t->by[d].bytes, bytes);
	__sync_fetch_and_add(&t->by[d].ops, ops);
	if (__sync_lock_test_and_set(&t->armed, 0))
		s->tells = 1;
}

/* Wakes user space, if it wants to be told of what the frame has done. It reads all sums then:
 * if there is no room for this event, earlier ones have not been read. */
static __always_inline void tell(struct scratch *s)
{
	__u64 event = 0;

	if (s->tells)
		bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP);
}
