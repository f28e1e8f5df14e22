/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few pieces of the kernel's BPF interface that steer.c uses. They are
 * declared here rather than taken from the build machine's linux-libc-dev and
 * libbpf-dev, so that every machine with the same clang makes the same object.
 * All of it is stable kernel ABI: include/uapi/linux/bpf.h, Linux 5.3 and later,
 * but for what is called on packets in fragments: 5.18.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

/* What an XDP program is called with. The kernel rewrites accesses to it. */
struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

enum xdp_action {
	XDP_ABORTED,
	XDP_DROP,
	XDP_PASS,
	XDP_TX,
	XDP_REDIRECT,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_XSKMAP = 17,
};

/* Helpers are called by number: enum bpf_func_id. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_tail_call)(void *ctx, void *map, __u32 index) = (void *)12;
static long (*bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static __u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, __u32 offset, void *to, __u32 n) = (void *)189;

/* How loaders expect sections and BTF map definitions to be spelled. */
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __always_inline inline __attribute__((always_inline))

/* BPF here is little-endian only (bpfel), the network never is. */
#define bpf_htons(x) __builtin_bswap16(x)
#define bpf_ntohs(x) __builtin_bswap16(x)
#define bpf_htonl(x) __builtin_bswap32(x)
