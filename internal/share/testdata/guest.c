/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest in C: it adds to a word so many times, through the segment and the doorbell that it
 * has inherited, and prints the last value that it found.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "ring.h"

enum { AREA = 3, BELL = 4 }; /* file descriptors */

static void *map(size_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, AREA, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: guest PEER KEY OP DATATYPE ADDS\n");
		return 2;
	}
	struct xdpfab_header *h = map(XDPFAB_PAGE);
	uint64_t entries = h->entries;
	if (h->magic != XDPFAB_MAGIC || h->version != XDPFAB_VERSION) {
		fprintf(stderr, "magic %#x, version %u\n", h->magic, h->version);
		return 1;
	}
	char *segment = map(XDPFAB_PAGE + entries * (sizeof(struct xdpfab_entry) + sizeof(struct xdpfab_completion)));
	h = (void *)segment;
	struct xdpfab_entry *sq = (void *)(segment + XDPFAB_PAGE);
	struct xdpfab_completion *cq = (void *)(sq + entries);
	uint64_t value = 0;
	for (long i = 0; i < atol(argv[5]); i++) {
		uint64_t at = h->posted;
		struct xdpfab_entry *e = &sq[at % entries];
		memset(e, 0, sizeof *e);
		e->cookie = 1000 + i;
		e->peer = strtoul(argv[1], NULL, 0), e->key = strtoull(argv[2], NULL, 0), e->count = 1;
		e->verb = XDPFAB_FETCH, e->op = atoi(argv[3]), e->datatype = atoi(argv[4]);
		e->operands[0] = 1;
		__atomic_store_n(&h->posted, at + 1, __ATOMIC_SEQ_CST);
		if (__atomic_exchange_n(&h->host_sleeps, 0, __ATOMIC_SEQ_CST))
			send(BELL, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		uint64_t seen = h->seen;
		while (__atomic_load_n(&h->completed, __ATOMIC_ACQUIRE) == seen) {
			__atomic_store_n(&h->guest_sleeps, 1, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&h->completed, __ATOMIC_SEQ_CST) != seen)
				break;
			struct pollfd p = {.fd = BELL, .events = POLLIN};
			if (poll(&p, 1, 60000) != 1) {
				fprintf(stderr, "no completion within a minute\n");
				return 1;
			}
			char b[8];
			recv(BELL, b, sizeof b, MSG_DONTWAIT);
		}
		struct xdpfab_completion *c = &cq[seen % entries];
		if (c->cookie != (uint64_t)(1000 + i) || c->outcome != XDPFAB_SUCCESS || c->length != 8) {
			fprintf(stderr, "completion %llu: outcome %d, status %d, reason %d\n", (unsigned long long)c->cookie, c->outcome, c->status, c->reason);
			return 1;
		}
		memcpy(&value, c->result, sizeof value);
		__atomic_store_n(&h->seen, seen + 1, __ATOMIC_RELEASE);
	}
	printf("%llu\n", (unsigned long long)value);
	return 0;
}
