// SPDX-License-Identifier: Apache-2.0
/*
 * libfabric's part in the benchmark of messages and remote memory access: the loops of
 * c/transfer.h by fi_tsend, fi_trecv, fi_write and fi_read, both sides polling.
 *
 *	fabric_transfer server TEST SIZE PROVIDER IP PORT
 *	fabric_transfer client TEST SIZE FLIGHT SECONDS WARMUP PROVIDER IP PORT ADDRESS KEY
 *
 * The server prints the ADDRESS of its memory, in the form that the provider wants, and
 * the KEY. The client says hello with the address of its own endpoint.
 */
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../../c/transfer.h"
#include "endpoint.h"

#define HELLO 1 /* tags */
#define DATA 2
#define MOST_ADDRESS 512 /* bytes */

/* An operation in flight; the context comes first, as libfabric points to it. */
struct operation {
	struct fi_context2 context;
	enum { RECEIVE, SEND, ACCESS, GREET } kind;
	unsigned slot; /* of a receive */
};

static struct {
	struct operation receive[MOST_MESSAGES], access[MOST_BATCH], greet;
	struct operation send[2 * MOST_MESSAGES], *idle[2 * MOST_MESSAGES];
	unsigned num_idle;
	struct fid_mr *memory, *source, *hello;
	fi_addr_t peer;
	uint64_t base, key; /* of the server's memory */
	uint8_t address[MOST_ADDRESS];
	int greeted; /* hello has been sent or has arrived */
} state;

static void open_transport(char **argument, uint64_t flags)
{
	/* A write is complete when it has arrived; a message, when its buffer is free. */
	open_endpoint(argument[0], argument[1], argument[2], flags, FI_TAGGED | FI_RMA | FI_MSG,
		      config.test == WRITE ? FI_DELIVERY_COMPLETE : 0);
	state.memory = expose(memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RECV);
	state.source = expose(source, sizeof(source), FI_READ | FI_WRITE | FI_SEND);
	state.hello = expose(state.address, sizeof(state.address), FI_SEND | FI_RECV);
	for (unsigned i = 0; i < 2 * MOST_MESSAGES; i++) {
		state.send[i].kind = SEND;
		state.idle[state.num_idle++] = &state.send[i];
	}
	state.greet.kind = GREET;
}

static void insert_peer(const void *address)
{
	must(fi_av_insert(net.av, address, 1, &state.peer, 0, NULL) == 1 ? 0 : -FI_EADDRNOTAVAIL, "fi_av_insert");
}

/* Whether an operation was posted. */
static int posted(ssize_t result, const char *call)
{
	if (result == -FI_EAGAIN)
		return 0;
	must(result, call);
	return 1;
}

static void transport_poll(void)
{
	struct fi_cq_entry entries[MOST];
	ssize_t n = completions(entries);

	for (ssize_t i = 0; i < n; i++) {
		struct operation *o = entries[i].op_context;

		switch (o->kind) {
		case RECEIVE:
			tell_arrival(o->slot);
			break;
		case SEND:
			state.idle[state.num_idle++] = o;
			break;
		case ACCESS:
			told.accesses--;
			break;
		case GREET:
			state.greeted = 1;
		}
	}
}

/* Waits with pauses: the provider's thread that connects shares the core with this one,
 * and would not get far beside one that spins. */
static void pause_and_poll(uint64_t end)
{
	usleep(200);
	transport_poll();
	if (now_ns() > end)
		die("no hello in time");
}

static void transport_serve(char **argument, int count)
{
	if (count != 3)
		die("%d arguments: want PROVIDER IP PORT", count);
	open_transport(argument, FI_SOURCE);
	if (!posted(fi_trecv(net.ep, state.address, sizeof(state.address), fi_mr_desc(state.hello), FI_ADDR_UNSPEC, HELLO, 0,
			     &state.greet.context), "fi_trecv"))
		die("no room for the receive of hello");
	printf("ready %llu %llu\n",
	       net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (unsigned long long)(uintptr_t)memory : 0ull,
	       (unsigned long long)fi_mr_key(state.memory));
	for (uint64_t end = now_ns() + LIMIT; !state.greeted && !stopped; )
		pause_and_poll(end);
	if (state.greeted)
		insert_peer(state.address);
}

static void transport_connect(char **argument, int count)
{
	size_t length = sizeof(state.address);
	uint64_t end = now_ns() + STALL;

	if (count != 5)
		die("%d arguments: want PROVIDER IP PORT ADDRESS KEY", count);
	open_transport(argument, 0);
	insert_peer(net.info->dest_addr);
	state.base = strtoull(argument[3], NULL, 10);
	state.key = strtoull(argument[4], NULL, 10);
	must(fi_getname(&net.ep->fid, state.address, &length), "fi_getname");
	while (!posted(fi_tsend(net.ep, state.address, length, fi_mr_desc(state.hello), state.peer, HELLO, &state.greet.context),
		       "fi_tsend"))
		pause_and_poll(end);
	while (!state.greeted && !stopped)
		pause_and_poll(end);
}

/* Small messages are injected, which is quicker: they need no completion. */
static int transport_send(const void *buffer, size_t length)
{
	if (length <= net.info->tx_attr->inject_size)
		return posted(fi_tinject(net.ep, buffer, length, state.peer, DATA), "fi_tinject");
	if (!state.num_idle || !posted(fi_tsend(net.ep, buffer, length, fi_mr_desc(state.source), state.peer, DATA,
						&state.idle[state.num_idle - 1]->context), "fi_tsend"))
		return 0;
	state.num_idle--;
	return 1;
}

static int transport_receive(void *buffer, size_t length, unsigned slot)
{
	struct operation *o = &state.receive[slot];

	o->kind = RECEIVE;
	o->slot = slot;
	return posted(fi_trecv(net.ep, buffer, length, fi_mr_desc(state.memory), FI_ADDR_UNSPEC, DATA, 0, &o->context), "fi_trecv");
}

/* An access is named by its offset: those of a batch have different ones, and all end
 * before the next batch begins. */
static struct operation *access_at(uint64_t offset)
{
	struct operation *o = &state.access[offset / config.size];

	o->kind = ACCESS;
	return o;
}

static int access_posted(ssize_t result, const char *call)
{
	if (!posted(result, call))
		return 0;
	told.accesses++;
	return 1;
}

static int transport_write(const void *buffer, uint64_t offset, size_t length)
{
	return access_posted(fi_write(net.ep, buffer, length, fi_mr_desc(state.source), state.peer, state.base + offset, state.key,
				      &access_at(offset)->context), "fi_write");
}

static int transport_read(void *buffer, uint64_t offset, size_t length)
{
	return access_posted(fi_read(net.ep, buffer, length, fi_mr_desc(state.source), state.peer, state.base + offset, state.key,
				     &access_at(offset)->context), "fi_read");
}

/* Writes complete when they have arrived (open_transport). */
static void transport_flush(void)
{
}

static void transport_close(void)
{
	fi_close(&state.memory->fid);
	fi_close(&state.source->fid);
	fi_close(&state.hello->fid);
	close_endpoint();
}
