/* SPDX-License-Identifier: Apache-2.0
 *
 * usage: cguest SOCKET NODE ADDS [ENDPOINT]: adds 1 to the first word of the region "words" of
 * a node, so many times or until SIGTERM, and reads and writes the second one. Then it takes a
 * lock, the third word, waits for it once more and recalls that, and sends a message to an
 * endpoint of the node. It prints what it has found, and the message that is the answer.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "guest.h"

static struct guest g;
static uint64_t origin; /* of the endpoint */

static volatile sig_atomic_t stopped;

static void stop(int number) {
	(void)number;
	stopped = 1;
}

static void die(const char *what, int err) {
	fprintf(stderr, "%s: %s (%d)\n", what, g.talk.error, -err);
	exit(1);
}

/* The answer to a message: each begins with an announcement. */
static char answer[256];
static size_t answered;

static void take_arrivals(void) {
	struct xdpfab_arrival a;
	char bytes[2048];
	while (guest_arrival(&g, &a, bytes, sizeof bytes)) {
		if (a.kind == XDPFAB_ANNOUNCE) {
			struct xdpfab_entry *e = guest_entry(&g);
			if (e == NULL)
				die("no room to admit a message", 0);
			e->verb = XDPFAB_ADMIT, e->key = a.session;
			guest_post(&g);
		}
		if (a.kind == XDPFAB_BEGIN || a.kind == XDPFAB_PART) {
			if (answered + a.bytes >= sizeof answer)
				die("an answer that is too long", 0);
			memcpy(answer + answered, bytes, a.bytes);
			answered += a.bytes;
		}
	}
}

/* The next completion. */
static struct xdpfab_completion completion(const char *what) {
	struct xdpfab_completion c;
	while (!guest_completion(&g, &c)) {
		take_arrivals();
		if (!guest_sleep(&g))
			die(what, 0);
	}
	return c;
}

/* Posts the entry that was filled in, and waits for its success. */
static struct xdpfab_completion run(const char *what) {
	guest_post(&g);
	struct xdpfab_completion c = completion(what);
	if (c.outcome != XDPFAB_SUCCESS) {
		snprintf(g.talk.error, sizeof g.talk.error, "outcome %d, status %d, reason %d", c.outcome, c.status, c.reason);
		die(what, 0);
	}
	return c;
}

static struct xdpfab_entry *entry(uint8_t verb, uint32_t peer) {
	struct xdpfab_entry *e = guest_entry(&g);
	if (e == NULL)
		die("no room for an entry", 0);
	e->verb = verb, e->peer = peer;
	return e;
}

/* The number of a peer by its address. */
static uint32_t peer(const char *node, const char *endpoint) {
	char address[128], quoted[160];
	snprintf(address, sizeof address, "%s/%s", node, endpoint);
	int err = json_quote(address, quoted, sizeof quoted);
	if (err == 0)
		err = talk_call(&g.talk, "peer", -1, "{\"origin\":%" PRIu64 ",\"addr\":%s}", origin, quoted);
	if (err)
		die("peer", err);
	return (uint32_t)json_number(g.talk.result);
}

static struct xdpfab_region lookup(uint32_t of, const char *name) {
	struct xdpfab_region r;
	struct xdpfab_entry *e = entry(XDPFAB_LOOKUP, of);
	e->count = (uint32_t)strlen(name); /* the result goes to the beginning of the arena */
	memcpy(e->operands, name, e->count);
	run("lookup");
	memcpy(&r, g.arena, sizeof r);
	return r;
}

static uint64_t fetch_add(uint32_t to, const struct xdpfab_region *r, uint64_t n) {
	struct xdpfab_entry *e = entry(XDPFAB_FETCH, to);
	e->key = r->key, e->incarnation = r->incarnation, e->offset = r->base, e->count = 1;
	e->op = XDPFAB_OP_SUM, e->datatype = XDPFAB_TYPE_UINT64;
	memcpy(e->operands, &n, sizeof n);
	struct xdpfab_completion c = run("fetch-add");
	memcpy(&n, c.result, sizeof n);
	return n;
}

/* Reads the second word, or writes it. */
static uint64_t transfer(uint32_t to, const struct xdpfab_region *r, bool write, uint64_t value) {
	struct xdpfab_entry *e = entry(write ? XDPFAB_WRITE : XDPFAB_READ, to);
	e->key = r->key, e->offset = r->base + 8, e->count = sizeof value;
	e->op = write ? XDPFAB_OP_WRITE : XDPFAB_OP_READ, e->datatype = XDPFAB_TYPE_UINT8;
	memcpy(e->operands, &value, write ? sizeof value : 0);
	struct xdpfab_completion c = run(write ? "write" : "read");
	memcpy(&value, c.result, sizeof value);
	return value;
}

/* Fills in an entry that waits until the third word is 0, and then sets it to a value. */
static struct xdpfab_entry *lock(uint32_t to, const struct xdpfab_region *r, uint64_t value) {
	static const uint32_t limit = XDPFAB_NO_LIMIT; /* microseconds */
	struct xdpfab_entry *e = entry(XDPFAB_WAIT, to);
	e->key = r->key, e->incarnation = r->incarnation, e->offset = r->base + 16, e->count = 1;
	e->op = XDPFAB_OP_CSWAP, e->datatype = XDPFAB_TYPE_UINT64;
	memcpy(e->operands, &value, sizeof value); /* the compare operand behind it is 0 */
	memcpy(e->operands + XDPFAB_INLINE - sizeof limit, &limit, sizeof limit);
	return e;
}

/* Takes the lock, waits for it although it is taken, and recalls that. */
static void lock_twice(uint32_t to, const struct xdpfab_region *r) {
	lock(to, r, 7);
	run("lock");
	lock(to, r, 8)->cookie = 1234;
	guest_post(&g);
	entry(XDPFAB_LEAVE, 0)->key = 1234;
	guest_post(&g);
	struct xdpfab_completion c = completion("recall");
	printf("recalled %" PRIu64 ": outcome %d, reason %d\n", c.cookie, c.outcome, c.reason);
}

/* Sends a message, and prints the answer. */
static void talk_to(uint32_t to) {
	static const char text[] = "hello from C";
	struct xdpfab_entry *e = entry(XDPFAB_SEND, to);
	e->count = sizeof text - 1;
	memcpy(e->operands, text, sizeof text - 1);
	run("message");
	for (take_arrivals(); answered == 0; take_arrivals())
		if (!guest_sleep(&g))
			die("no answer to the message", 0);
	printf("answer: %.*s\n", (int)answered, answer);
}

int main(int argc, char **argv) {
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: cguest SOCKET NODE ADDS [ENDPOINT]\n");
		return 2;
	}
	signal(SIGTERM, stop);
	int err = guest_attach(&g, argv[1]);
	if (err)
		die("attach", err);
	if (getrandom(&origin, sizeof origin, 0) != sizeof origin)
		die("random numbers", 0);
	origin |= 1; /* not 0 */
	err = talk_call(&g.talk, "endpoint", -1, "{\"number\":-1,\"origin\":%" PRIu64 "}", origin);
	if (err == 0)
		err = talk_call(&g.talk, "serve", -1, "{\"endpoint\":%" PRIu64 ",\"on\":true,\"messages\":true}",
			json_number(g.talk.result));
	if (err)
		die("endpoint", err);
	err = talk_call(&g.talk, "peer", -1, "{\"origin\":%" PRIu64 ",\"addr\":\"nowhere\"}", origin);
	printf("peer \"nowhere\": %d, %s\n", -err, g.talk.error);

	uint32_t words = peer(argv[2], "0");
	struct xdpfab_region r = lookup(words, "words");
	uint64_t found = 0;
	for (long i = 0, adds = atol(argv[3]); i < adds && !stopped; i++)
		found = fetch_add(words, &r, 1);
	printf("region %.*s of %" PRIu64 " bytes, last found %" PRIu64 "\n", r.name_len, r.name, r.size, found);
	uint64_t second = transfer(words, &r, false, 0);
	transfer(words, &r, true, second + 1);
	printf("second word %" PRIu64 ", then %" PRIu64 "\n", second, transfer(words, &r, false, 0));

	if (argc == 5) {
		lock_twice(words, &r);
		talk_to(peer(argv[2], argv[4]));
	}
	return 0;
}
