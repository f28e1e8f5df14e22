/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pieces of the kernel's BPF interface that the executor uses beyond those of
 * steer.c. All of it is stable kernel ABI; the newest helpers are of Linux 5.18.
 */
#pragma once

#include "../../../bpf/headers/kernel.h"
#include "../../../bpf/headers/packet.h"
#include "../../../bpf/headers/reason.h"

typedef signed int __s32;
typedef signed long long __s64;

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_F_INNER_MAP = 1 << 12,
};

static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*bpf_xdp_adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*bpf_ringbuf_output)(void *ring, const void *data, __u64 size, __u64 flags) = (void *)130;
static long (*bpf_loop)(__u32 n, void *callback, void *ctx, __u64 flags) = (void *)181;
static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, __u32 at, void *from, __u32 n) = (void *)190;

#define __array(name, val) typeof(val) *name[]
#define __noinline __attribute__((noinline))

/* Cuts a number to the bits of a mask, where the verifier sees it: the compiler may know
 * already that it is small enough, which the verifier does not. */
#define CUT(x, mask)                                                          \
	({                                                                    \
		__u64 cut_ = (x);                                             \
		asm volatile("%0 &= %1" : "+r"(cut_) : "i"(mask));            \
		cut_;                                                         \
	})
