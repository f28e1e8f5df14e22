// SPDX-License-Identifier: Apache-2.0
/*
 * libfabric's part in the benchmark: adds to a uint64 by fi_fetch_atomic, or by
 * fi_atomic, on reliable datagram endpoints, both sides polling.
 *
 *	fabric server PROVIDER IP PORT
 *	fabric client PROVIDER IP PORT ADDRESS KEY fetch|base WINDOW SECONDS WARMUP
 *
 * The server prints the ADDRESS of its memory, in the form that the provider wants,
 * and the KEY. The client has to name both.
 */
#include <rdma/fi_atomic.h>
#include <unistd.h>

#include "endpoint.h"

#define WORDS 4096
#define LIMIT (600 * SECOND) /* time after which a server ends by itself */
#define STALL (5 * SECOND)   /* time without a completion that is an error */

static uint64_t words[WORDS];

static void serve(void)
{
	struct fi_cq_entry entries[MOST];
	struct fid_mr *mr = expose(words, sizeof(words), FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint64_t end = now_ns() + LIMIT;
	int by_address = net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	printf("ready %llu %llu\n", by_address ? (unsigned long long)(uintptr_t)words : 0ull,
	       (unsigned long long)fi_mr_key(mr));
	for (uint64_t rounds = 1; !stopped; rounds++) {
		completions(entries);
		if (!(rounds & 0xfffff) && now_ns() > end)
			die("nobody stopped the server");
	}
	fi_close(&mr->fid);
}

/* An operation in flight; the context comes first, as libfabric points to it. */
struct operation {
	struct fi_context2 context;
	uint64_t posted, operand, result;
};

static struct operation operations[MOST], *idle[MOST];
static unsigned num_idle;
static fi_addr_t peer;
static uint64_t address, key, next_word;
static void *descriptor;
static int fetch;

static int post(uint64_t now)
{
	struct operation *o = idle[num_idle - 1];
	uint64_t at = address + next_word % WORDS * sizeof(uint64_t);
	ssize_t result;

	o->posted = now;
	o->operand = 1;
	if (fetch)
		result = fi_fetch_atomic(net.ep, &o->operand, 1, descriptor, &o->result, descriptor, peer, at, key,
					 FI_UINT64, FI_SUM, &o->context);
	else
		result = fi_atomic(net.ep, &o->operand, 1, descriptor, peer, at, key, FI_UINT64, FI_SUM, &o->context);
	if (result == -FI_EAGAIN)
		return 0;
	must(result, fetch ? "fi_fetch_atomic" : "fi_atomic");
	num_idle--;
	next_word++;
	return 1;
}

/* Keeps the window full for a while, then waits for the operations in flight. */
static uint64_t run(struct histogram *h, unsigned window, uint64_t duration)
{
	struct fi_cq_entry entries[MOST];
	uint64_t now = now_ns(), end = now + duration, heard = now, done = 0;

	while (now < end || num_idle < window) {
		while (now < end && num_idle && post(now))
			;
		ssize_t n = completions(entries);
		now = now_ns();
		for (ssize_t i = 0; i < n; i++) {
			struct operation *o = entries[i].op_context;

			histogram_add(h, now - o->posted);
			idle[num_idle++] = o;
		}
		done += n;
		if (n)
			heard = now;
		else if (now - heard > STALL)
			die("no completion for 5 s");
	}
	return done;
}

/* Runs the first operation, with pauses: the provider's thread that connects shares
 * the core with this one, and would not get far beside one that spins. */
static void connect_peer(void)
{
	struct fi_cq_entry entries[MOST];
	uint64_t end = now_ns() + STALL;

	for (int posted = 0; ; usleep(200)) {
		if (!posted)
			posted = post(now_ns());
		if (completions(entries))
			break;
		if (now_ns() > end)
			die("no connection within 5 s");
	}
	num_idle++; /* the operation is still in its place on the stack */
}

static void drive(unsigned window, uint64_t duration, uint64_t warmup)
{
	static struct measurement m;
	struct fid_mr *mr = expose(operations, sizeof(operations), FI_READ | FI_WRITE);

	descriptor = fi_mr_desc(mr);
	must(fi_av_insert(net.av, net.info->dest_addr, 1, &peer, 0, NULL) == 1 ? 0 : -FI_EADDRNOTAVAIL, "fi_av_insert");
	for (unsigned i = 0; i < window; i++)
		idle[num_idle++] = &operations[i];
	connect_peer();
	histogram_reset(&m.latency);
	run(&m.latency, window, warmup);
	measure_begin(&m);
	uint64_t done = run(&m.latency, window, duration);
	measure_end(&m, done, 0);
	fi_close(&mr->fid);
}

int main(int count, char **argument)
{
	lines();
	stop_on_signals();
	if (count == 5 && !strcmp(argument[1], "server")) {
		open_endpoint(argument[2], argument[3], argument[4], FI_SOURCE, FI_ATOMIC | FI_MSG, FI_DELIVERY_COMPLETE);
		serve();
	} else if (count == 11 && !strcmp(argument[1], "client")) {
		unsigned window = atoi(argument[8]);
		double seconds = atof(argument[9]), warmup = atof(argument[10]);

		if (window < 1 || window > MOST || seconds <= 0 || seconds > 600 || warmup <= 0 || warmup > 600)
			die("window %s, %s and %s seconds: want a window of 1 to %d and up to 600 seconds each",
			    argument[8], argument[9], argument[10], MOST);
		fetch = !strcmp(argument[7], "fetch");
		if (!fetch && strcmp(argument[7], "base"))
			die("operation %s: want fetch or base", argument[7]);
		address = strtoull(argument[5], NULL, 10);
		key = strtoull(argument[6], NULL, 10);
		open_endpoint(argument[2], argument[3], argument[4], 0, FI_ATOMIC | FI_MSG, FI_DELIVERY_COMPLETE);
		drive(window, (uint64_t)(seconds * SECOND), (uint64_t)(warmup * SECOND));
	} else {
		die("usage: fabric server PROVIDER IP PORT\n"
		    "       fabric client PROVIDER IP PORT ADDRESS KEY fetch|base WINDOW SECONDS WARMUP");
	}
	close_endpoint();
	return 0;
}
