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
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "../../c/measure.h"

#define WORDS 4096
#define LIMIT (600 * SECOND) /* time after which a server ends by itself */
#define STALL (5 * SECOND)   /* time without a completion that is an error */
#define MOST 64              /* operations outstanding */

static uint64_t words[WORDS];

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
} net;

/* Ends the program if a call of libfabric's failed. */
static void must(long result, const char *call)
{
	if (result < 0)
		die("%s: %s", call, fi_strerror(-result));
}

static struct fid_mr *expose(void *memory, size_t length, uint64_t access)
{
	struct fid_mr *mr;

	must(fi_mr_reg(net.domain, memory, length, access, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	if (net.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		must(fi_mr_bind(mr, &net.ep->fid, 0), "fi_mr_bind");
		must(fi_mr_enable(mr), "fi_mr_enable");
	}
	return mr;
}

/* An enabled endpoint; the server's is bound to the address, the client's info
 * holds it as the destination. */
static void open_endpoint(const char *provider, const char *ip, const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 1024};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	hints->caps = FI_ATOMIC | FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE; /* of base operations, too */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 17), ip, port, flags, hints, &net.info), provider);
	fi_freeinfo(hints);
	must(fi_fabric(net.info->fabric_attr, &net.fabric, NULL), "fi_fabric");
	must(fi_domain(net.fabric, net.info, &net.domain, NULL), "fi_domain");
	must(fi_endpoint(net.domain, net.info, &net.ep, NULL), "fi_endpoint");
	must(fi_cq_open(net.domain, &cq, &net.cq, NULL), "fi_cq_open");
	must(fi_av_open(net.domain, &av, &net.av, NULL), "fi_av_open");
	must(fi_ep_bind(net.ep, &net.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(net.ep, &net.av->fid, 0), "fi_ep_bind");
	must(fi_enable(net.ep), "fi_enable");
}

static void close_endpoint(void)
{
	fi_close(&net.ep->fid);
	fi_close(&net.av->fid);
	fi_close(&net.cq->fid);
	fi_close(&net.domain->fid);
	fi_close(&net.fabric->fid);
	fi_freeinfo(net.info);
}

/* Takes up to MOST completions. */
static ssize_t completions(struct fi_cq_entry *entries)
{
	struct fi_cq_err_entry error = {0};
	ssize_t n = fi_cq_read(net.cq, entries, MOST);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(net.cq, &error, 0) > 0)
		die("an operation failed: %s", fi_strerror(error.err));
	must(n, "fi_cq_read");
	return n;
}

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
		open_endpoint(argument[2], argument[3], argument[4], FI_SOURCE);
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
		open_endpoint(argument[2], argument[3], argument[4], 0);
		drive(window, (uint64_t)(seconds * SECOND), (uint64_t)(warmup * SECOND));
	} else {
		die("usage: fabric server PROVIDER IP PORT\n"
		    "       fabric client PROVIDER IP PORT ADDRESS KEY fetch|base WINDOW SECONDS WARMUP");
	}
	close_endpoint();
	return 0;
}
