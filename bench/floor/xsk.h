/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An AF_XDP socket on queue 0 of an interface, as bare as possible: copy mode, one
 * UMEM, four rings, and an XDP program of fifteen instructions that hands frames
 * of one EtherType to the socket. One thread uses it.
 */
#ifndef BENCH_XSK_H
#define BENCH_XSK_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../c/measure.h"

#ifndef XDP_USE_SG /* Linux 6.6 */
#define XDP_USE_SG (1 << 4)
#define XDP_PKT_CONTD 1
#endif
#ifndef BPF_F_XDP_HAS_FRAGS /* Linux 5.18 */
#define BPF_F_XDP_HAS_FRAGS (1u << 5)
#endif

#define ETHERTYPE 0x88B6 /* local experimental; xdpfab uses 0x88B5 */
#define RING 2048u       /* entries of each ring */
#define CHUNK 4096u      /* bytes */
#define ONE_CHUNK 3498   /* veth's largest MTU for native XDP with frames in one chunk */
/* Chunks to receive into, and as many to send from. They are few, so that they stay
 * in the cache: with a full ring each frame would be in memory that was last touched
 * thousands of frames ago, which costs up to half a microsecond a round trip. */
#define CHUNKS 128u

struct ring {
	uint32_t *producer, *consumer, *flags;
	void *entries;
	uint32_t local; /* our own index: the producer's for fill and tx, else the consumer's */
	uint32_t free;  /* for fill and tx: the index at which to stop, as last read */
};

struct xsk {
	int fd;
	uint8_t *umem;
	struct ring fill, completion, rx, tx;
	uint8_t mac[6];
	uint32_t chunks; /* to receive into, and as many to send from */
	int several;     /* whether frames take several chunks, as the MTU has it */
	int need_wakeup; /* whether the kernel says when it needs a system call */
};

static inline long bpf_call(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

/* The program: if (eth->type == ETHERTYPE) redirect to the socket; else pass. */
static inline int load_program(int map, int several)
{
	const struct bpf_insn code[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct xdp_md, data), 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, 3, 1, offsetof(struct xdp_md, data_end), 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 14),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 8, 0), /* too short: pass */
		INSN(BPF_LDX | BPF_MEM | BPF_H, 4, 2, 12, 0),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 6, htons(ETHERTYPE)),
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct xdp_md, rx_queue_index), 0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t) "Dual BSD/GPL",
		.prog_flags = several ? BPF_F_XDP_HAS_FRAGS : 0,
	};
	return bpf_call(BPF_PROG_LOAD, &attr);
}

/* Attaches in native mode. The link, and with it the program, ends with the process. */
static inline void steer(struct xsk *x, int ifindex)
{
	union bpf_attr map = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
	int map_fd = bpf_call(BPF_MAP_CREATE, &map), program;
	uint32_t key = 0, value = x->fd;
	union bpf_attr set = {.map_fd = map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
	union bpf_attr link = {.link_create = {.target_ifindex = ifindex, .attach_type = BPF_XDP, .flags = XDP_FLAGS_DRV_MODE}};

	if (map_fd < 0 || bpf_call(BPF_MAP_UPDATE_ELEM, &set))
		die("the map of sockets: %s (needs CAP_BPF)", strerror(errno));
	if ((program = load_program(map_fd, x->several)) < 0)
		die("loading the XDP program: %s (needs CAP_BPF, CAP_NET_ADMIN)", strerror(errno));
	link.link_create.prog_fd = program;
	if (bpf_call(BPF_LINK_CREATE, &link) < 0)
		die("attaching the XDP program in native mode: %s; does another process use the interface?", strerror(errno));
}

static inline void map_ring(int fd, struct ring *r, const struct xdp_ring_offset *o, off_t page, size_t entry)
{
	uint8_t *p = mmap(NULL, o->desc + RING * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);

	if (p == MAP_FAILED)
		die("mapping a ring: %s", strerror(errno));
	*r = (struct ring){.producer = (void *)(p + o->producer), .consumer = (void *)(p + o->consumer),
			   .flags = (void *)(p + o->flags), .entries = p + o->desc};
}

/* The caller sets x->chunks and x->need_wakeup first. A frame takes a chunk for each of its parts. */
static inline void xsk_open(struct xsk *x, const char *ifname)
{
	uint32_t entries = RING;
	struct xdp_umem_reg reg = {.chunk_size = CHUNK};
	struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY | (x->need_wakeup ? XDP_USE_NEED_WAKEUP : 0)};
	struct xdp_mmap_offsets offsets;
	socklen_t length = sizeof(offsets);
	struct ifreq request = {0};

	x->fd = socket(AF_XDP, SOCK_RAW, 0);
	if (x->fd < 0)
		die("AF_XDP socket: %s (needs CAP_NET_RAW)", strerror(errno));
	address.sxdp_ifindex = if_nametoindex(ifname);
	snprintf(request.ifr_name, IFNAMSIZ, "%s", ifname);
	int inet = socket(AF_INET, SOCK_DGRAM, 0);
	if (!address.sxdp_ifindex || ioctl(inet, SIOCGIFHWADDR, &request))
		die("interface %s: %s", ifname, strerror(errno));
	memcpy(x->mac, request.ifr_hwaddr.sa_data, 6);
	if (ioctl(inet, SIOCGIFMTU, &request))
		die("the MTU of %s: %s", ifname, strerror(errno));
	close(inet);
	x->several = request.ifr_mtu > ONE_CHUNK;
	if (x->several) {
		address.sxdp_flags |= XDP_USE_SG;
		x->chunks *= 2; /* for half as many frames, of up to four chunks */
	}
	reg.len = 2ull * CHUNK * x->chunks;
	x->umem = mmap(NULL, reg.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	reg.addr = (uintptr_t)x->umem;
	if (x->umem == MAP_FAILED || setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)))
		die("UMEM: %s", strerror(errno));
	for (int option = XDP_RX_RING; option <= XDP_UMEM_COMPLETION_RING; option++)
		if (option != XDP_UMEM_REG && setsockopt(x->fd, SOL_XDP, option, &entries, sizeof(entries)))
			die("ring %d: %s", option, strerror(errno));
	if (getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length))
		die("ring offsets: %s", strerror(errno));
	map_ring(x->fd, &x->rx, &offsets.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
	map_ring(x->fd, &x->tx, &offsets.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
	map_ring(x->fd, &x->fill, &offsets.fr, XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t));
	map_ring(x->fd, &x->completion, &offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t));
	/* The kernel releases a queue some milliseconds after its last user has gone. */
	for (int tries = 0; bind(x->fd, (void *)&address, sizeof(address)); tries++) {
		if (errno != EBUSY || tries == 200)
			die("binding to queue 0 of %s: %s", ifname, strerror(errno));
		usleep(5000);
	}
	steer(x, address.sxdp_ifindex);
}

/* Our entries of a ring, from r->local on. */
#define AT(ring, type, index) (((type *)(ring)->entries)[(index) & (RING - 1)])

/* How many entries the kernel has put into rx or completion. */
static inline uint32_t ring_ready(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - r->local;
}

static inline void ring_release(struct ring *r, uint32_t n)
{
	r->local += n;
	__atomic_store_n(r->consumer, r->local, __ATOMIC_RELEASE);
}

static inline void ring_publish(struct ring *r)
{
	__atomic_store_n(r->producer, r->local, __ATOMIC_RELEASE);
}

/* Sends the packets of the tx ring by one system call. A packet that the kernel cannot
 * deliver is lost, as on a wire. */
static inline void xsk_kick(struct xsk *x)
{
	ring_publish(&x->tx);
	if (x->need_wakeup && !(__atomic_load_n(x->tx.flags, __ATOMIC_ACQUIRE) & XDP_RING_NEED_WAKEUP))
		return;
	while (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		if (errno == EBUSY || errno == ENOBUFS)
			return;
		else if (errno != EAGAIN)
			die("sendto: %s", strerror(errno));
}

#endif
