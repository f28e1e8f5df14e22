/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the executor knows: regions, sessions, cached answers. All of it is in maps, which
 * outlive the process that made them. This program alone writes sessions and answers; user
 * space has it do so by calling it (call.h).
 */
#pragma once

#include "kernel.h"

enum {
	FRAME_MAX = 2048, /* bytes of a frame, both ways */
	FRAME_MASK = FRAME_MAX - 1,
	HEADER = 34, /* bytes of a frame before the payload */
	FRAME_MIN = 46,
	PAYLOAD_MIN = FRAME_MIN - HEADER, /* of a frame that may be padded */
	PAYLOAD_MAX = FRAME_MAX - HEADER,
	WINDOW = 64, /* frames, and answers kept, of a session */
	SLOT = WINDOW - 1, /* mask of a psn: its place in sets and in the cache */
	BLOCK = 4096, /* bytes of memory that one lookup finds: a page, so that none is wasted */
	OPS_MAX = 255, /* operations of a frame */
	MAX_SESSIONS = 256, /* unless the loader says otherwise */
	MAX_REGIONS = 256,
};

/* A registration. The bytes are in the map at this place of memories. */
struct region {
	__u64 base; /* what operations give for the first byte */
	__u64 length; /* bytes */
	__u64 auth; /* of the authorization key that a session must have */
	__u32 place;
	__u32 incarnation;
	__u32 access; /* bits of enum access */
	__u32 pad;
};

enum access { REMOTE_READ = 1, REMOTE_WRITE = 2 };

enum life {
	FREE, /* the place is nobody's */
	LIVE, /* frames run */
	FROZEN, /* nothing runs any more; cached answers are still given */
	ENDED, /* likewise, and the initiator is told */
};

/* What holds a session up: nothing else of it runs. */
enum claim {
	CLAIMED = 1, /* user space executes a frame */
	IN_PART, /* a frame has run in part: nobody can say what became of it */
};

/* Why user space has to see all frames of a session. */
enum attended {
	HOLDS = 1, /* it holds early ones */
	RELAYS = 2, /* what this program sends is lost: it sends the answers */
	SHOWN = 4, /* somebody captures packets */
};

/* The target half of a session. Invariants as for session.Target: answers exist for the
 * psns in (freed, expected), and for those that ran ahead. */
struct session {
	__u32 id; /* that frames name; 0: the place is free */
	__u32 remote; /* the initiator's id of it */
	__u32 epoch;
	__u32 lock; /* 1 while a CPU is at it */
	__u32 expected; /* lowest psn that has not run */
	__u32 freed; /* answers up to here have arrived */
	__u32 probes; /* number of the latest probe */
	__u32 claimed; /* enum claim */
	__u64 ahead; /* bit psn%64: ran, though an earlier one has not */
	__u64 clean; /* bit psn%64: ran, and has no results; meaningful for cached answers */
	__u64 heard; /* how often the initiator has sent something new */
	__u64 auth;
	__u64 frames; /* that ran */
	__u64 ops; /* of them */
	__u32 payload; /* largest payload of a frame, bytes */
	__u16 credit; /* frames */
	__u8 life; /* enum life */
	__u8 lane; /* of this side */
	__u8 kind; /* enum kind: the encapsulation */
	__u8 unordered;
	__u8 attended; /* bits of enum attended: user space has to see all frames */
	__u8 dscp; /* of answers, with priority and vlan */
	__u8 priority;
	__u8 handed; /* user space was given a frame in want of an answer, and has not looked at it */
	__u8 pad[2];
};

/* The response to a request that has run, and is neither clean nor freed. */
struct answer {
	__u16 n; /* bytes */
	__u8 ops;
	__u8 flags;
	__u32 psn;
	__u8 data[FRAME_MAX + 16]; /* n of them, at most PAYLOAD_MAX; what lies behind them is nothing */
};

/* Sessions by id: their places. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, __u32);
	__type(value, __u32);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SESSIONS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct session);
} sessions SEC(".maps");

/* By place * WINDOW + psn % WINDOW. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SESSIONS * WINDOW);
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

/* Regions by key. User space writes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_REGIONS);
	__type(key, __u64);
	__type(value, struct region);
} regions SEC(".maps");

/* The memory of a region. The blocks of a map lie behind one another. */
struct block {
	__u8 bytes[BLOCK];
};

struct memory {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__type(key, __u32);
	__type(value, __u8[BLOCK]); /* a struct block */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_REGIONS);
	__type(key, __u32);
	__array(values, struct memory);
} memories SEC(".maps");
