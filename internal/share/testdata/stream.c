/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest in C that has one operation of any length: it adds 1 to COUNT neighbouring words of
 * 64 bits and takes what it found, part by part through the two halves of the arena, and
 * prints the sum of that.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "ring.h"

enum { SEGMENT = 3, BELL = 4 }; /* file descriptors */
enum { STREAM = 1000, PARTS = 2 }; /* cookies: of the operation; below PARTS: of its parts */

static struct xdpfab_header *h;
static struct xdpfab_entry *sq;
static struct xdpfab_completion *cq;
static char *arena;

static struct xdpfab_entry *next_entry(void) {
	struct xdpfab_entry *e = &sq[h->posted % h->entries];
	return memset(e, 0, sizeof *e);
}

static void post(void) {
	__atomic_store_n(&h->posted, h->posted + 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&h->host_sleeps, 0, __ATOMIC_SEQ_CST))
		send(BELL, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static struct xdpfab_completion completion(void) {
	while (__atomic_load_n(&h->completed, __ATOMIC_ACQUIRE) == h->seen) {
		__atomic_store_n(&h->guest_sleeps, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&h->completed, __ATOMIC_SEQ_CST) != h->seen)
			break;
		struct pollfd p = {.fd = BELL, .events = POLLIN};
		if (poll(&p, 1, 60000) != 1) {
			fprintf(stderr, "no completion within a minute\n");
			exit(1);
		}
		char b[8];
		recv(BELL, b, sizeof b, MSG_DONTWAIT);
	}
	struct xdpfab_completion c = cq[h->seen % h->entries];
	__atomic_store_n(&h->seen, h->seen + 1, __ATOMIC_SEQ_CST);
	return c;
}

/* feed posts the next n elements, whose operands and results have a half of the arena. */
static void feed(unsigned part, uint32_t n) {
	uint64_t *operands = (void *)(arena + part * (h->arena / PARTS));
	for (uint32_t i = 0; i < n; i++)
		operands[i] = 1;
	struct xdpfab_places at = {.operand = (char *)operands - arena, .result = (char *)(operands + n) - arena};
	struct xdpfab_entry *e = next_entry();
	e->cookie = part, e->key = STREAM, e->verb = XDPFAB_FEED, e->count = n;
	memcpy(e->operands, &at, sizeof at);
	post();
}

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: stream PEER KEY OP DATATYPE COUNT\n");
		return 2;
	}
	h = mmap(NULL, XDPFAB_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, SEGMENT, 0);
	size_t rings = XDPFAB_PAGE + h->entries * (sizeof *sq + sizeof *cq);
	char *segment = mmap(NULL, rings + h->arena, PROT_READ | PROT_WRITE, MAP_SHARED, SEGMENT, 0);
	sq = (void *)(segment + XDPFAB_PAGE), cq = (void *)(sq + h->entries), arena = segment + rings;

	uint32_t count = strtoul(argv[5], NULL, 0), fed = 0, most = h->arena / PARTS / 16, in[PARTS] = {0};
	struct xdpfab_entry *e = next_entry();
	e->cookie = STREAM, e->flags = XDPFAB_STREAM, e->verb = XDPFAB_FETCH, e->count = count;
	e->peer = strtoul(argv[1], NULL, 0), e->key = strtoull(argv[2], NULL, 0);
	e->op = atoi(argv[3]), e->datatype = atoi(argv[4]);
	post();
	uint64_t sum = 0;
	for (unsigned part = 0; part < PARTS; part++) {
		feed(part, in[part] = count - fed < most ? count - fed : most);
		fed += in[part];
	}
	for (;;) {
		struct xdpfab_completion c = completion();
		if (c.outcome != XDPFAB_SUCCESS || (c.cookie != STREAM && (c.cookie >= PARTS || c.length != 8ull * in[c.cookie]))) {
			fprintf(stderr, "completion %llu: outcome %d, status %d, reason %d, length %llu\n",
				(unsigned long long)c.cookie, c.outcome, c.status, c.reason, (unsigned long long)c.length);
			return 1;
		}
		if (c.cookie == STREAM)
			break;
		uint64_t *results = (uint64_t *)(arena + c.cookie * (h->arena / PARTS)) + in[c.cookie];
		for (uint32_t i = 0; i < in[c.cookie]; i++)
			sum += results[i];
		if (fed < count) {
			feed(c.cookie, in[c.cookie] = count - fed < most ? count - fed : most);
			fed += in[c.cookie];
		}
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
