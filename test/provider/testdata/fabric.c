/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric.h"

enum fi_progress progress;
enum fi_threading threading;
size_t queue_size;
struct fi_info *info;
struct fid_fabric *fabric;
struct fid_domain *domain;
struct fid_ep *ep;
struct fid_av *av;
struct fid_cq *txcq, *rxcq;

static struct fi_info *ask(int number)
{
	struct fi_info *hints = fi_allocinfo(), *found;
	char service[8];

	snprintf(service, sizeof service, "%d", number);
	hints->fabric_attr->prov_name = strdup("xdpfab");
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = progress;
	hints->domain_attr->threading = threading;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV | FI_TRIGGER;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, service, FI_SOURCE, hints, &found));
	fi_freeinfo(hints);
	return found;
}

void open_all(int number)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_attr table = {.type = FI_AV_TABLE};

	info = ask(number);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_cq_open(domain, &cq, &txcq, NULL));
	cq.size = queue_size;
	OK(fi_cq_open(domain, &cq, &rxcq, NULL));
	OK(fi_av_open(domain, &table, &av, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &rxcq->fid, FI_RECV));
	OK(fi_enable(ep));
}

void close_all(void)
{
	CHECK(fi_close(&av->fid) == -FI_EBUSY, "an endpoint uses the vector");
	CHECK(fi_close(&domain->fid) == -FI_EBUSY, "there are objects of the domain");
	OK(fi_close(&ep->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&txcq->fid));
	OK(fi_close(&rxcq->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

fi_addr_t peer_at(const char *ip, int number)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
	fi_addr_t at;

	CHECK(inet_pton(AF_INET, ip, &a.sin_addr) == 1, "%s", ip);
	CHECK(fi_av_insert(av, &a, 1, &at, 0, NULL) == 1, "%s", ip);
	return at;
}

struct fi_cq_tagged_entry take(struct fid_cq *cq)
{
	const time_t end = time(NULL) + SECONDS;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {.err_data_size = 0};
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		CHECK(time(NULL) < end, "no completion");
	if (n == -FI_EAVAIL)
		fi_cq_readerr(cq, &bad, 0);
	CHECK(n == 1, "%zd: %s: %s", n, fi_strerror(bad.err), fi_cq_strerror(cq, bad.prov_errno, NULL, NULL, 0));
	return e;
}

struct fi_cq_err_entry take_error(struct fid_cq *cq)
{
	const time_t end = time(NULL) + SECONDS;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {.err_data_size = 0};
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		CHECK(time(NULL) < end, "no completion");
	CHECK(n == -FI_EAVAIL, "%zd: want an error", n);
	CHECK(fi_cq_readerr(cq, &bad, 0) == 1, "no error to read");
	return bad;
}

void fill(uint8_t *to, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(i * 31 + i / 251 + seed * 17);
}

void check(const uint8_t *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		CHECK(at[i] == (uint8_t)(i * 31 + i / 251 + seed * 17), "byte %zu of %zu of message %u", i, n, seed);
}
