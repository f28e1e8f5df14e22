/* SPDX-License-Identifier: Apache-2.0
 *
 * triggers PEER-IP KEY OWN-IP: work that waits for counters, on a region of the daemon of the
 * peer, and by messages to itself.
 */
#include "fabric.h"

enum { NUMBER = 400, MANY = 100 };

static fi_addr_t peer, self;
static uint64_t key;
static struct fid_cntr *counter, *done, *writes;
static struct fid_ep *later; /* the endpoint, with FI_TRIGGER for sends and receives */

static struct fid_cntr *cntr(void)
{
	struct fid_cntr *c;

	OK(fi_cntr_open(domain, NULL, &c, NULL));
	return c;
}

static void reset(void)
{
	OK(fi_cntr_set(counter, 0));
	OK(fi_cntr_set(done, 0));
	OK(fi_cntr_seterr(done, 0));
}

static struct fi_triggered_context at(uint64_t threshold)
{
	return (struct fi_triggered_context){.event_type = FI_TRIGGER_THRESHOLD,
					     .trigger.threshold = {.cntr = counter, .threshold = threshold}};
}

static void none(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;

	CHECK(fi_cq_read(cq, &e, 1) == -FI_EAGAIN, "a completion");
}

static uint64_t remote(uint64_t offset)
{
	uint64_t value = ~0ull;

	POST(fi_read(ep, &value, 8, NULL, peer, offset, key, &value));
	CHECK(take(txcq).op_context == &value, "another completion");
	return value;
}

/* The order is that of the thresholds, and of posting where they are equal, in whatever steps
 * the counter moves. */
static void order(void)
{
	static const uint64_t thresholds[] = {5, 2, 5, 9}, order[] = {1, 0, 2, 3};
	struct fi_triggered_context c[4];
	uint64_t values[4] = {0};

	reset();
	for (int i = 0; i < 4; i++) {
		c[i] = at(thresholds[i]);
		POST(fi_write(later, &values[i], 8, NULL, peer, 0, key, &c[i]));
		values[i] = 100 + (uint64_t)i; /* what is not injected is read when it starts */
	}
	OK(fi_cntr_add(counter, 1));
	OK(fi_cntr_adderr(counter, 7)); /* failures start no triggered operation */
	none(txcq);
	OK(fi_cntr_add(counter, 5));
	for (int i = 0; i < 3; i++)
		CHECK(take(txcq).op_context == &c[order[i]], "completion %d is another one", i);
	none(txcq);
	CHECK(remote(0) == 102, "%lu", remote(0));
	OK(fi_cntr_set(counter, 1000));
	CHECK(take(txcq).op_context == &c[3] && remote(0) == 103, "the last");
	c[0] = at(1000); /* it is due at once */
	POST(fi_write(later, &values[0], 8, NULL, peer, 0, key, &c[0]));
	take(txcq);
	OK(fi_cntr_seterr(counter, 0));
}

/* The buffer of what is injected can be used again. */
static void injected(void)
{
	uint64_t value = 77, with = 103;
	struct fi_triggered_context c = at(1), a = at(2);
	struct iovec iov = {&value, 8};
	struct fi_rma_iov there = {.addr = 8, .len = 8, .key = key};
	struct fi_msg_rma m = {.msg_iov = &iov, .iov_count = 1, .addr = peer, .rma_iov = &there, .rma_iov_count = 1,
			       .context = &c};
	struct fi_ioc swap = {&value, 1}, compare = {&with, 1};
	uint64_t was = 0;
	struct fi_ioc result = {&was, 1};
	struct fi_rma_ioc word = {.addr = 8, .count = 1, .key = key};
	struct fi_msg_atomic x = {.msg_iov = &swap, .iov_count = 1, .addr = peer, .rma_iov = &word, .rma_iov_count = 1,
				  .datatype = FI_UINT64, .op = FI_CSWAP, .context = &a};

	reset();
	OK(fi_writemsg(ep, &m, FI_TRIGGER | FI_INJECT));
	value = 78;
	with = 77;
	OK(fi_compare_atomicmsg(ep, &x, &compare, NULL, 1, &result, NULL, 1, FI_TRIGGER | FI_INJECT));
	value = with = 1;
	OK(fi_cntr_add(counter, 2));
	take(txcq);
	take(txcq);
	CHECK(was == 77 && remote(8) == 78, "%lu, then %lu", was, remote(8));
}

/* A receive and the message for it, which comes to the endpoint that sends it. */
static void messages(void)
{
	struct fi_triggered_context c[2] = {at(1), at(2)};
	uint64_t in = 0, out = 9;

	reset();
	OK(fi_trecv(later, &in, 8, NULL, FI_ADDR_UNSPEC, 7, 0, &c[0]));
	OK(fi_tsend(later, &out, 8, NULL, self, 7, &c[1]));
	none(rxcq);
	OK(fi_cntr_add(counter, 1));
	none(rxcq);
	OK(fi_cntr_add(counter, 1));
	CHECK(take(rxcq).op_context == &c[0] && in == 9, "%lu", in);
	CHECK(take(txcq).op_context == &c[1], "the send");
	OK(fi_trecv(later, &in, 8, NULL, FI_ADDR_UNSPEC, 7, 0, (c[0] = at(3), &c[0])));
	OK(fi_tsend(later, &out, 8, NULL, self, 7, (c[1] = at(3), &c[1])));
	OK(fi_cancel(&ep->fid, &c[0]));
	OK(fi_cancel(&ep->fid, &c[1]));
	CHECK(take_error(rxcq).err == FI_ECANCELED && take_error(txcq).err == FI_ECANCELED, "cancelled");
	CHECK(fi_cancel(&ep->fid, &c[0]) == -FI_ENOENT, "it is cancelled");
	OK(fi_cntr_add(counter, 1));
	none(txcq);
	CHECK(fi_tsend(later, &out, 8, NULL, self, 7, NULL) == -FI_EINVAL, "no context says when");
}

static struct fi_deferred_work when(struct fid_cntr *c, uint64_t threshold, enum fi_op_type what)
{
	return (struct fi_deferred_work){.triggering_cntr = c, .threshold = threshold, .op_type = what};
}

/* A chain that runs by itself: a write, an addition that returns what was, a message and its
 * receive, and a change of a counter. The endpoint has no completion of any. */
static void chain(void)
{
	uint64_t value = 40, one = 1, was = 0, in = 0;
	struct iovec out = {&value, 8}, into = {&in, 8};
	struct fi_rma_iov there = {.addr = 16, .len = 8, .key = key};
	struct fi_rma_ioc word = {.addr = 16, .count = 1, .key = key};
	struct fi_ioc add = {&one, 1}, result = {&was, 1};
	struct fi_op_rma write = {.ep = ep, .msg = {.msg_iov = &out, .iov_count = 1, .addr = peer, .rma_iov = &there,
						    .rma_iov_count = 1}};
	struct fi_op_fetch_atomic fetch = {
		.ep = ep, .msg = {.msg_iov = &add, .iov_count = 1, .addr = peer, .rma_iov = &word, .rma_iov_count = 1,
				  .datatype = FI_UINT64, .op = FI_SUM},
		.fetch = {.msg_iov = &result, .iov_count = 1}};
	struct fi_op_msg receive = {.ep = ep, .msg = {.msg_iov = &into, .iov_count = 1, .addr = FI_ADDR_UNSPEC}},
			 send = {.ep = later, .msg = {.msg_iov = &out, .iov_count = 1, .addr = self}};
	struct fi_op_cntr more = {.cntr = counter, .value = 1000};
	struct fi_deferred_work w[5] = {when(counter, 1, FI_OP_WRITE), when(done, 1, FI_OP_FETCH_ATOMIC),
					when(done, 2, FI_OP_RECV), when(done, 2, FI_OP_SEND),
					when(done, 4, FI_OP_CNTR_ADD)};
	const uint64_t before = fi_cntr_read(writes);

	reset();
	w[0].op.rma = &write;
	w[1].op.fetch_atomic = &fetch;
	w[2].op.msg = &receive;
	w[3].op.msg = &send;
	w[4].op.cntr = &more;
	for (int i = 4; i >= 0; i--) {
		w[i].completion_cntr = i == 4 ? NULL : done;
		OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w[i]));
	}
	CHECK(fi_close(&done->fid) == -FI_EBUSY, "work needs the counter");
	OK(fi_cntr_add(counter, 1));
	OK(fi_cntr_wait(counter, 1001, SECONDS * 1000));
	CHECK(fi_cntr_read(done) == 4 && was == 40 && in == 40, "%lu done, %lu, %lu", fi_cntr_read(done), was, in);
	none(txcq);
	none(rxcq);
	CHECK(fi_cntr_read(writes) == before && remote(16) == 41, "%lu", fi_cntr_read(writes));
	fetch.flags = FI_COMPLETION;
	fetch.msg.context = &fetch;
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w[1]));
	CHECK(take(txcq).op_context == &fetch && was == 41, "%lu", was);
}

/* Failures count, too, for what is queued; what is cancelled counts as failed. */
static void failures(void)
{
	uint64_t value = 1;
	struct iovec out = {&value, 8};
	struct fi_rma_iov there = {.addr = 0, .len = 8, .key = ~key};
	struct fi_op_rma write = {.ep = ep, .msg = {.msg_iov = &out, .iov_count = 1, .addr = peer, .rma_iov = &there,
						    .rma_iov_count = 1, .context = &write}};
	struct fi_op_cntr set = {.cntr = counter, .value = 50};
	struct fi_deferred_work w = when(counter, 1, FI_OP_WRITE), c = when(done, 1, FI_OP_CNTR_SET);

	reset();
	w.op.rma = &write;
	w.completion_cntr = done;
	c.op.cntr = &set;
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w));
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &c));
	OK(fi_cntr_add(counter, 1));
	OK(fi_cntr_wait(counter, 50, SECONDS * 1000));
	CHECK(fi_cntr_readerr(done) == 1 && take_error(txcq).err == FI_ENOKEY, "a write with a key that is not one");
	w.threshold = 51;
	c.threshold = 2;
	for (int i = 0; i < 2; i++) {
		OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w));
		OK(fi_control(&domain->fid, i == 0 ? FI_CANCEL_WORK : FI_FLUSH_WORK, i == 0 ? &w : NULL));
		CHECK(fi_cntr_readerr(done) == 2 + (uint64_t)i && take_error(txcq).err == FI_ECANCELED, "cancelled");
	}
	CHECK(fi_control(&domain->fid, FI_CANCEL_WORK, &w) == -FI_ENOENT, "it is cancelled");
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &c)); /* two failures are two */
	CHECK(fi_cntr_read(counter) == 50, "%lu", fi_cntr_read(counter));
	c.completion_cntr = done;
	CHECK(fi_control(&domain->fid, FI_QUEUE_WORK, &c) == -FI_EINVAL, "a change has no completion");
}

/* More starts at a time than there is room for. */
static void crowd(void)
{
	const uint64_t one = 1;
	struct fi_ioc add = {(void *)(uintptr_t)&one, 1};
	struct fi_rma_ioc word = {.addr = 24, .count = 1, .key = key};
	struct fi_op_atomic sum = {.ep = ep, .msg = {.msg_iov = &add, .iov_count = 1, .addr = peer, .rma_iov = &word,
						     .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM}};
	const uint64_t before = remote(24);
	struct fi_deferred_work w = when(counter, 1, FI_OP_ATOMIC);

	reset();
	w.op.atomic = &sum;
	w.completion_cntr = done;
	for (int i = 0; i < MANY; i++)
		OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w));
	OK(fi_cntr_add(counter, 1));
	OK(fi_cntr_wait(done, MANY, SECONDS * 1000));
	CHECK(remote(24) == before + MANY, "%lu after %lu", remote(24), before);
}

/* Work of an endpoint that is closed ends. */
static void close_with_work(void)
{
	struct fi_op_msg send = {.ep = ep, .msg = {.addr = self}};
	struct fi_deferred_work w = when(counter, 1, FI_OP_SEND), r = when(counter, 1, FI_OP_RECV);
	struct fi_triggered_context c = at(1);

	reset();
	w.op.msg = r.op.msg = &send;
	w.completion_cntr = r.completion_cntr = done;
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &w));
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &r));
	OK(fi_send(later, NULL, 0, NULL, self, &c));
	r.triggering_cntr = done;
	r.threshold = 0; /* a receive that waits for its message */
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &r));
	OK(fi_close(&later->fid));
	OK(fi_close(&ep->fid));
	CHECK(fi_cntr_readerr(done) == 3, "%lu works have ended", fi_cntr_readerr(done));
}

int main(int argc, char **argv)
{
	CHECK(argc == 4, "triggers PEER-IP KEY OWN-IP");
	open_all(NUMBER);
	peer = peer_at(argv[1], 0);
	self = peer_at(argv[3], NUMBER);
	key = strtoull(argv[2], NULL, 0);
	counter = cntr();
	done = cntr();
	writes = cntr();
	OK(fi_ep_bind(ep, &writes->fid, FI_WRITE));
	OK(fi_ep_alias(ep, &later, FI_TRANSMIT | FI_RECV | FI_TRIGGER));
	order();
	injected();
	messages();
	chain();
	failures();
	crowd();
	close_with_work();
	OK(fi_close(&counter->fid));
	OK(fi_close(&done->fid));
	OK(fi_close(&writes->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&txcq->fid));
	OK(fi_close(&rxcq->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	puts("ok");
	return 0;
}
