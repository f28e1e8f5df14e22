/* SPDX-License-Identifier: Apache-2.0
 *
 * scalable OWN-IP: the transmit contexts of a scalable endpoint send to its receive contexts, by
 * their names.
 */
#include "fabric.h"

enum { NUMBER = 600, SENDS = 2, RECEIVES = 3, BITS = 2 };

static struct fid_ep *sep, *tx[SENDS], *rx[RECEIVES];
static struct fid_cq *sent[SENDS], *got[RECEIVES];
static struct fid_av *vector;

static struct fid_cq *queue(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cq *cq;

	OK(fi_cq_open(domain, &attr, &cq, NULL));
	return cq;
}

static fi_addr_t open_sep(const char *ip)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .rx_ctx_bits = BITS};
	struct fi_info *own = fi_dupinfo(info);
	struct sockaddr_in name;
	size_t len = sizeof name;
	fi_addr_t at;

	((struct sockaddr_in *)own->src_addr)->sin_port = htons(NUMBER + 1);
	own->ep_attr->tx_ctx_cnt = SENDS;
	own->ep_attr->rx_ctx_cnt = RECEIVES;
	OK(fi_scalable_ep(domain, own, &sep, NULL));
	fi_freeinfo(own);
	CHECK(fi_tx_context(sep, SENDS, NULL, &tx[0], NULL) == -FI_EINVAL, "there is no such context");
	OK(fi_av_open(domain, &attr, &vector, NULL));
	CHECK(fi_enable(sep) == -FI_ENOAV, "it has no vector");
	OK(fi_scalable_ep_bind(sep, &vector->fid, 0));
	for (int i = 0; i < SENDS; i++) {
		OK(fi_tx_context(sep, i, NULL, &tx[i], NULL));
		sent[i] = queue();
		OK(fi_ep_bind(tx[i], &sent[i]->fid, FI_TRANSMIT));
		OK(fi_enable(tx[i]));
	}
	for (int i = 0; i < RECEIVES; i++) {
		OK(fi_rx_context(sep, i, NULL, &rx[i], NULL));
		got[i] = queue();
		OK(fi_ep_bind(rx[i], &got[i]->fid, FI_RECV));
		OK(fi_enable(rx[i]));
	}
	OK(fi_enable(sep));
	OK(fi_getname(&sep->fid, &name, &len));
	CHECK(name.sin_port == htons(NUMBER + 1), "number %u", ntohs(name.sin_port));
	CHECK(inet_pton(AF_INET, ip, &name.sin_addr) == 1 && fi_av_insert(vector, &name, 1, &at, 0, NULL) == 1, "%s", ip);
	return at;
}

/* Each context gets what is for it, from the address of the scalable endpoint. */
static void exchange(fi_addr_t at)
{
	uint64_t out, in[RECEIVES];

	for (int i = 0; i < RECEIVES; i++)
		POST(fi_recv(rx[i], &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i]));
	for (int i = RECEIVES - 1; i >= 0; i--) {
		const time_t end = time(NULL) + SECONDS;
		struct fi_cq_tagged_entry e;
		fi_addr_t from = 77;
		ssize_t n;

		out = 100 + (uint64_t)i;
		POST(fi_send(tx[i % SENDS], &out, 8, NULL, fi_rx_addr(at, i, BITS), &out));
		while ((n = fi_cq_readfrom(got[i], &e, 1, &from)) == -FI_EAGAIN)
			CHECK(time(NULL) < end, "no message");
		CHECK(n == 1 && e.op_context == &in[i] && in[i] == out && from == at, "%zd, %lu from %lu", n, in[i], from);
		CHECK(take(sent[i % SENDS]).op_context == &out, "the send");
	}
}

/* Peers reach memory by any of the contexts. */
static void memory(fi_addr_t at)
{
	const uint64_t one = 1;
	uint64_t target = 5, was = 0;
	struct fid_mr *mr;

	OK(fi_mr_reg(domain, &target, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 9, 0, &mr, NULL));
	for (int i = 0; i < RECEIVES; i++) {
		POST(fi_fetch_atomic(tx[0], &one, 1, NULL, &was, NULL, fi_rx_addr(at, i, BITS), 0, 9, FI_UINT64, FI_SUM, NULL));
		take(sent[0]);
		CHECK(was == 5 + (uint64_t)i, "%lu", was);
	}
	OK(fi_close(&mr->fid));
}

int main(int argc, char **argv)
{
	fi_addr_t at;

	CHECK(argc == 2, "scalable OWN-IP");
	open_all(NUMBER);
	CHECK(info->domain_attr->max_ep_tx_ctx == 1, "contexts for a program that has not asked for them");
	at = open_sep(argv[1]);
	exchange(at);
	memory(at);
	CHECK(fi_close(&sep->fid) == -FI_EBUSY, "it has contexts");
	OK(fi_av_remove(vector, &at, 1, 0));
	CHECK(fi_send(tx[0], NULL, 0, NULL, fi_rx_addr(at, 1, BITS), NULL) == -FI_EINVAL, "the address is removed");
	for (int i = 0; i < SENDS; i++) {
		OK(fi_close(&tx[i]->fid));
		OK(fi_close(&sent[i]->fid));
	}
	for (int i = 0; i < RECEIVES; i++) {
		OK(fi_close(&rx[i]->fid));
		OK(fi_close(&got[i]->fid));
	}
	OK(fi_close(&sep->fid));
	OK(fi_close(&vector->fid));
	close_all();
	puts("ok");
	return 0;
}
