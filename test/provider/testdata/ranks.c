/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks RANK RANKS IP...: one of many, of which each has the address with the number 100 +
 * RANK, at the IP of the list that is in turn. All send a message to all others, and then add to
 * the memory of all others. Each says "ready", and begins with the first line of its input;
 * says how long the messages took, in microseconds; goes on to make progress until its input
 * ends; and prints what has been added to its memory.
 */
#include <poll.h>
#include <stdbool.h>

#include "fabric.h"

enum { MOST = 256, KEY = 9, FIRST = 100 };

static int rank, ranks;
static fi_addr_t peers[MOST];
static uint64_t memory[1], from[MOST], found[MOST];

static bool input(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Takes a message. What was sent has no completions but errors, which end the program. */
static void take_message(void)
{
	struct fi_cq_tagged_entry e;
	ssize_t n;

	while ((n = fi_cq_read(rxcq, &e, 1)) == -FI_EAGAIN)
		if (fi_cq_read(txcq, &e, 1) != -FI_EAGAIN)
			take(txcq);
	CHECK(n == 1, "%zd", n);
}

static void exchange(void)
{
	const uint64_t value = (uint64_t)rank;
	uint64_t sum = 0;

	for (int i = 1; i < ranks; i++)
		POST(fi_recv(ep, &from[i], 8, NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 1; i < ranks; i++)
		POST(fi_inject(ep, &value, 8, peers[(rank + i) % ranks]));
	for (int i = 1; i < ranks; i++)
		take_message();
	for (int i = 1; i < ranks; i++)
		sum += from[i];
	CHECK(sum + value == (uint64_t)ranks * (uint64_t)(ranks - 1) / 2, "%lu from the others", sum);
}

static void add(void)
{
	const uint64_t one = 1;

	for (int i = 0; i < ranks; i++)
		POST(fi_fetch_atomic(ep, &one, 1, NULL, &found[i], NULL, peers[(rank + i) % ranks], 0, KEY, FI_UINT64,
				     FI_SUM, NULL));
	for (int i = 0; i < ranks; i++)
		take(txcq);
	for (int i = 0; i < ranks; i++)
		CHECK(found[i] < (uint64_t)ranks, "%lu", found[i]);
}

int main(int argc, char **argv)
{
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	uint64_t began;

	CHECK(argc > 3 && (ranks = atoi(argv[2])) <= MOST, "ranks RANK RANKS IP...");
	rank = atoi(argv[1]);
	open_all(FIRST + rank);
	for (int i = 0; i < ranks; i++)
		peers[i] = peer_at(argv[3 + i % (argc - 3)], FIRST + i);
	OK(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	puts("ready");
	fflush(stdout);
	CHECK(getchar() == '\n', "no input");
	began = now_us();
	exchange();
	printf("%lu\n", now_us() - began);
	add();
	puts("added");
	fflush(stdout);
	while (!input())
		CHECK(fi_cq_read(rxcq, &e, 1) == -FI_EAGAIN, "one message too many");
	OK(fi_close(&mr->fid));
	close_all();
	printf("%lu\n", memory[0]);
	return 0;
}
