/* SPDX-License-Identifier: Apache-2.0
 *
 * shared OWN-IP: two endpoints share their receives, and a third one sends to them.
 */
#include "fabric.h"

enum { NUMBER = 500 };

static struct fid_ep *srx, *sharing[2];
static struct fid_stx *stx;
static struct fid_cq *queues[2];
static fi_addr_t to[2];

static void share(const char *ip, int i)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *own = fi_dupinfo(info);

	((struct sockaddr_in *)own->src_addr)->sin_port = htons((uint16_t)(NUMBER + 1 + i));
	own->ep_attr->rx_ctx_cnt = own->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	OK(fi_cq_open(domain, &cq, &queues[i], NULL));
	OK(fi_endpoint(domain, own, &sharing[i], NULL));
	OK(fi_ep_bind(sharing[i], &srx->fid, 0));
	CHECK(fi_ep_bind(sharing[i], &srx->fid, 0) == -FI_EINVAL, "it is bound");
	OK(fi_ep_bind(sharing[i], &av->fid, 0));
	OK(fi_ep_bind(sharing[i], &queues[i]->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(sharing[i]));
	OK(fi_ep_bind(sharing[i], &stx->fid, 0)); /* late, as by Sandia OpenSHMEM */
	CHECK(fi_ep_bind(sharing[i], &stx->fid, 0) == -FI_EINVAL, "it is bound");
	CHECK(fi_recv(sharing[i], NULL, 0, NULL, FI_ADDR_UNSPEC, NULL) == -FI_EOPBADSTATE, "the context has the receives");
	to[i] = peer_at(ip, NUMBER + 1 + i);
	fi_freeinfo(own);
}

/* A message to one of the endpoints, which its queue tells of. */
static void told(int i, uint64_t value, uint64_t *buffer, void *context)
{
	struct fi_cq_tagged_entry e = take(queues[i]);

	CHECK(e.op_context == context && e.len == 8 && *buffer == value, "%zu bytes, %lu: want %lu", e.len, *buffer, value);
	CHECK(fi_cq_read(queues[1 - i], &e, 1) == -FI_EAGAIN, "the other one was told");
	take(txcq);
}

/* Receives take the messages of either endpoint in the order in which they come, posted before
 * them or behind. */
static void receives(void)
{
	uint64_t out, in[4] = {0};

	for (int i = 0; i < 2; i++)
		POST(fi_recv(srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i]));
	for (int i = 0; i < 2; i++) {
		out = 10 + (uint64_t)i;
		POST(fi_send(ep, &out, 8, NULL, to[1 - i], NULL));
		told(1 - i, out, &in[i], &in[i]);
	}
	for (int i = 2; i < 4; i++) {
		out = 10 + (uint64_t)i;
		POST(fi_tsend(ep, &out, 8, NULL, to[i % 2], 7, NULL));
		POST(fi_trecv(srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &in[i]));
		told(i % 2, out, &in[i], &in[i]);
	}
	POST(fi_trecv(srx, &in[0], 8, NULL, FI_ADDR_UNSPEC, 9, 0, &in[0]));
	OK(fi_cancel(&srx->fid, &in[0]));
	CHECK(take_error(queues[0]).err == FI_ECANCELED, "the first one's queue tells");
	POST(fi_trecv(srx, &in[0], 8, NULL, to[0], 9, 0, &in[0])); /* not from there */
	out = 5;
	POST(fi_tsend(ep, &out, 8, NULL, to[1], 9, NULL));
	POST(fi_trecv(srx, &in[1], 8, NULL, FI_ADDR_UNSPEC, 9, 0, &in[1]));
	told(1, 5, &in[1], &in[1]);
	POST(fi_tsend(sharing[0], &out, 8, NULL, to[1], 9, NULL)); /* from there */
	CHECK(take(queues[1]).op_context == &in[0], "the receive of one sender");
	take(queues[0]);
}

/* More than the queue holds waits at its sender, and comes when there are receives. */
static void waits(void)
{
	enum { LONG = 5 << 20, MESSAGES = 4 };
	uint8_t *out = malloc(LONG), *in = malloc(LONG);
	struct fi_cq_tagged_entry e;

	fill(out, LONG, 3);
	for (int i = 0; i < MESSAGES; i++)
		POST(fi_tsend(ep, out, LONG, NULL, to[i % 2], 0x1000 + (uint64_t)i, NULL));
	for (int i = MESSAGES - 1; i >= 0; i--) {
		memset(in, 0, LONG);
		POST(fi_trecv(srx, in, LONG, NULL, FI_ADDR_UNSPEC, 0x1000 + (uint64_t)i % 2, 2, in));
		e = take(queues[i % 2]);
		CHECK(e.len == LONG && e.tag % 2 == (uint64_t)i % 2, "%zu bytes, tag %#lx", e.len, e.tag);
		check(in, LONG, 3);
	}
	for (int i = 0; i < MESSAGES; i++)
		take(txcq);
	free(out);
	free(in);
}

/* What an endpoint has got stays when it is closed. */
static void closes(void)
{
	struct fi_msg_tagged m = {.addr = FI_ADDR_UNSPEC, .tag = 0x55, .context = &m};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad;
	uint64_t out = 8, in = 0;
	const time_t end = time(NULL) + SECONDS;
	ssize_t n;

	POST(fi_tsend(ep, &out, 8, NULL, to[0], 0x55, NULL));
	take(txcq);
	for (;;) {
		OK(fi_trecvmsg(srx, &m, FI_PEEK));
		n = fi_cq_read(queues[0], &e, 1);
		if (n == 1)
			break;
		CHECK(n == -FI_EAVAIL && fi_cq_readerr(queues[0], &bad, 0) == 1 && bad.err == FI_ENOMSG, "%zd", n);
		CHECK(time(NULL) < end, "no message");
	}
	CHECK(fi_close(&srx->fid) == -FI_EBUSY, "endpoints use it");
	OK(fi_close(&stx->fid)); /* endpoints have nothing of it */
	OK(fi_close(&sharing[0]->fid));
	OK(fi_close(&queues[0]->fid));
	POST(fi_trecv(srx, &in, 8, NULL, FI_ADDR_UNSPEC, 0x55, 0, &in));
	e = take(queues[1]);
	CHECK(e.op_context == &in && in == 8, "%lu", in);
	POST(fi_recv(srx, &in, 8, NULL, FI_ADDR_UNSPEC, &in));
	OK(fi_close(&sharing[1]->fid));
	OK(fi_close(&queues[1]->fid));
	OK(fi_close(&srx->fid));
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "shared OWN-IP");
	open_all(NUMBER);
	OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
	OK(fi_stx_context(domain, info->tx_attr, &stx, NULL));
	share(argv[1], 0);
	share(argv[1], 1);
	receives();
	waits();
	closes();
	close_all();
	puts("ok");
	return 0;
}
