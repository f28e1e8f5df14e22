/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reliable datagram endpoint of libfabric's with its queue and address vector, for
 * a program of one thread that polls.
 */
#ifndef BENCH_ENDPOINT_H
#define BENCH_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "../../c/measure.h"

#define MOST 256 /* completions that are taken at a time; operations in flight */

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

static inline struct fid_mr *expose(void *memory, size_t length, uint64_t access)
{
	static uint64_t key; /* for providers that leave the choice to us */
	struct fid_mr *mr;

	must(fi_mr_reg(net.domain, memory, length, access, 0, ++key, 0, &mr, NULL), "fi_mr_reg");
	if (net.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		must(fi_mr_bind(mr, &net.ep->fid, 0), "fi_mr_bind");
		must(fi_mr_enable(mr), "fi_mr_enable");
	}
	return mr;
}

/* An enabled endpoint with these capabilities, and with flags for each operation; the
 * server's is bound to the address, the client's info holds it as the destination. */
static void open_endpoint(const char *provider, const char *ip, const char *port, uint64_t flags,
			  uint64_t caps, uint64_t op_flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 1024};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = op_flags;
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

#endif
