/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a CPU works on a frame. One place is for packets, which the network's interrupt
 * brings, and one for calls of user space, which that interrupt may interrupt.
 */
#pragma once

#include "state.h"

/* What a frame's header says. */
struct header {
	__u32 session;
	__u32 epoch;
	__u32 psn;
	__u32 ack;
	__u8 type;
	__u8 flags;
	__u8 ops;
	__u8 lane;
};

/* A record of array operations, or a run of them. */
struct record {
	__u64 key;
	__u64 offset; /* bytes, of the operation at hand */
	__u32 incarnation; /* of the region meant; 0 for any */
	__u32 count; /* elements */
	__u32 total; /* elements from the first to the end of the caller's array */
	__u32 operand; /* where in the frame it lies */
	__u32 compare;
	__u32 next; /* where the next operation of a run lies */
	__u32 stride; /* from one operation of a run to the next, bytes */
	__u32 run; /* operations of a run, or 0 */
	__u8 verb;
	__u8 op;
	__u8 size; /* of an element, bytes */
	__u8 is_signed;
};

enum kind { RAW, UDP4, UDP6 };

/* Where in a packet the frame is. The steering program has judged what is before it. */
struct envelope {
	__u32 frame; /* its offset */
	__u32 length; /* of the frame, bytes */
	__u32 session; /* that the frame names */
	__u32 kind;
	__u32 vlan; /* id, 0 for none */
	__u32 tagged;
};

enum { HINT_BITS = 6, HINTS = 1 << HINT_BITS };

struct scratch {
	__u32 busy; /* 1: in use */
	__u32 length; /* of the frame, bytes */
	__u32 hints[HINTS]; /* places where sessions were found, by hint_of */
	struct header h;
	struct envelope envelope;

	/* The walk through the records. */
	__u64 key; /* of the record before */
	__u32 incarnation;
	__u32 has_key;
	__u32 pos; /* of the next record in the frame */
	__u32 left; /* operations still to come */
	__u32 whole; /* the first record is the only one */
	struct record rec;

	/* The region of the record at hand, if found is set. */
	struct region region;
	__u64 region_key;
	__u32 found;
	__u64 auth; /* of the session */

	/* The execution of the operation at hand. */
	__u32 index; /* of it, in the frame */
	__u32 elements; /* still to come */
	__u32 run_left; /* operations of the run at hand still to come */
	__u32 sweeps; /* sweep may execute operations of the record at hand */
	__u32 fits; /* the values of all operations of the run have room */
	__u32 unresolved; /* an operation of the run will be refused */
	__u64 at; /* byte in the region of the next element */
	__u64 old; /* what the element was */
	__u32 operand; /* of the next element, in the frame */
	__u32 compare;
	__u32 began; /* where in the answer its value begins */
	__u32 to; /* of the next result, in the answer */
	__u32 done; /* operations */
	__u32 torn; /* an array has been changed in part */
	__u32 tells; /* user space is to be told of what has been counted */

	/* The answer. */
	__u32 room; /* bytes of payload */
	__u32 values; /* bytes */
	__u32 failed; /* entries of list */
	__u32 body; /* bytes behind the header of the frame that is sent */
	__u8 list[2 * OPS_MAX + 2]; /* index and status of each operation that failed */
	__u8 out[48]; /* header of the frame that is sent */
	__u8 in[FRAME_MAX + 64]; /* the frame that came */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

enum { FOR_PACKETS, FOR_CALLS };

/* The place to work on a frame, or 0 if it is in use. */
static __always_inline struct scratch *scratch_of(__u32 whose)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &whose);

	if (!s || __sync_val_compare_and_swap(&s->busy, 0, 1))
		return 0;
	return s;
}

/* Numbers in the frame that came. The offset may be anything: a wrong one reads other
 * bytes of the frame. */
static __always_inline __u64 in64(const struct scratch *s, __u32 at)
{
	return *(__u64 *)(s->in + CUT(at, FRAME_MASK));
}

static __always_inline __u32 in32(const struct scratch *s, __u32 at)
{
	return *(__u32 *)(s->in + CUT(at, FRAME_MASK));
}
