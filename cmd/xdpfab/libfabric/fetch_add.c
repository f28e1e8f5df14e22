/* SPDX-License-Identifier: Apache-2.0
 *
 * fetch_add IP KEY OFFSET COUNT: a program of libfabric, any provider's. It adds 1 to a word of a
 * region so many times, one after the other, and prints what it found first and last.
 *
 *	gcc fetch_add.c -lfabric
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

enum { LIMIT = 60 }; /* s that an operation may take */

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t peer;

static void must(long result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", call, fi_strerror((int)-result));
	exit(1);
}

static void open_endpoint(const char *ip)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct sockaddr_in to = {.sin_family = AF_INET}; /* port 0 is the daemon's own endpoint */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;

	hints->caps = FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("xdpfab");
	must(inet_pton(AF_INET, ip, &to.sin_addr) == 1 ? 0 : -FI_EINVAL, ip);
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &queue, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &table, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_av_insert(av, &to, 1, &peer, 0, NULL) == 1 ? 0 : -FI_EADDRNOTAVAIL, "fi_av_insert");
	fi_freeinfo(hints);
}

static uint64_t fetch_add(uint64_t key, uint64_t offset, uint64_t more)
{
	const time_t end = time(NULL) + LIMIT;
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry done;
	uint64_t before = 0;
	ssize_t n;

	must(fi_fetch_atomic(ep, &more, 1, NULL, &before, NULL, peer, offset, key, FI_UINT64, FI_SUM, NULL),
	     "fi_fetch_atomic");
	while ((n = fi_cq_read(cq, &done, 1)) == -FI_EAGAIN)
		must(time(NULL) < end ? 0 : -FI_ETIMEDOUT, "fi_fetch_atomic");
	if (n == -FI_EAVAIL)
		n = fi_cq_readerr(cq, &error, 0) == 1 ? -error.err : -FI_EOTHER;
	must(n, "fi_fetch_atomic");
	return before;
}

int main(int argc, char **argv)
{
	uint64_t key, offset, count, first, last = 0;

	must(argc == 5 ? 0 : -FI_EINVAL, "fetch_add IP KEY OFFSET COUNT");
	key = strtoull(argv[2], NULL, 0);
	offset = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	open_endpoint(argv[1]);
	first = fetch_add(key, offset, 0);
	for (uint64_t i = 0; i < count; i++)
		last = fetch_add(key, offset, 1);
	printf("{\"first\":%llu,\"last\":%llu}\n", (unsigned long long)first, (unsigned long long)last);
	return 0;
}
