/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether hints ask for no more than the provider has.
 */
#include <rdma/fi_endpoint.h>

#include "info.h"
#include "prov.h"

static bool refuse(const char *what)
{
	INFO(CORE, "hints: %s: the provider has less\n", what);
	return false;
}

static bool tx_fits(const struct fi_tx_attr *h)
{
	if ((h->caps & ~ALL_CAPS) != 0)
		return refuse("tx_attr caps");
	if ((h->op_flags & ~OP_FLAGS) != 0)
		return refuse("tx_attr op_flags");
	if ((h->msg_order & ~(ORDERS | FI_ORDER_DATA)) != 0)
		return refuse("tx_attr msg_order");
	if (h->comp_order != 0)
		return refuse("tx_attr comp_order");
	if (h->inject_size > INJECT_SIZE || h->size > MOST_QUEUE)
		return refuse("tx_attr inject_size or size");
	if (h->iov_limit > MOST_IOV || h->rma_iov_limit > MOST_IOV)
		return refuse("tx_attr iov_limit or rma_iov_limit");
	return true;
}

static bool rx_fits(const struct fi_rx_attr *h)
{
	if ((h->caps & ~ALL_CAPS) != 0)
		return refuse("rx_attr caps");
	if ((h->op_flags & ~(FI_COMPLETION | FI_MULTI_RECV)) != 0)
		return refuse("rx_attr op_flags");
	if ((h->msg_order & ~(ORDERS | FI_ORDER_DATA)) != 0)
		return refuse("rx_attr msg_order");
	if (h->comp_order != 0)
		return refuse("rx_attr comp_order");
	if (h->size > MOST_QUEUE || h->iov_limit > MOST_IOV || h->total_buffered_recv > MOST_BUFFERED)
		return refuse("rx_attr size, iov_limit or total_buffered_recv");
	return true;
}

static bool ep_fits(const struct fi_ep_attr *h)
{
	if (h->type != FI_EP_UNSPEC && h->type != FI_EP_RDM)
		return refuse("ep_attr type");
	if (h->protocol != FI_PROTO_UNSPEC && (h->protocol != PROTOCOL || h->protocol_version > PROTOCOL_VERSION))
		return refuse("ep_attr protocol");
	if (h->max_msg_size > MOST_MESSAGE)
		return refuse("ep_attr max_msg_size");
	if ((h->tx_ctx_cnt > MOST_CONTEXTS && h->tx_ctx_cnt != FI_SHARED_CONTEXT) ||
	    (h->rx_ctx_cnt > MOST_CONTEXTS && h->rx_ctx_cnt != FI_SHARED_CONTEXT))
		return refuse("ep_attr tx_ctx_cnt or rx_ctx_cnt");
	if (h->auth_key_size != 0)
		return refuse("ep_attr auth_key_size");
	return true;
}

static bool domain_fits(const struct fi_domain_attr *h)
{
	if ((h->caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM)) != 0)
		return refuse("domain_attr caps");
	if (h->cq_data_size > 8 || h->mr_key_size > 8 || h->mr_iov_limit > MOST_IOV)
		return refuse("domain_attr cq_data_size, mr_key_size or mr_iov_limit");
	if (h->max_ep_tx_ctx > MOST_CONTEXTS || h->max_ep_rx_ctx > MOST_CONTEXTS)
		return refuse("domain_attr contexts of an endpoint");
	if (h->auth_key_size != 0)
		return refuse("domain_attr auth_key_size");
	return true;
}

/* Of shared contexts there may be fewer than hinted, as libfabric's ofi_check_domain_attr has it: the
 * info says how many there are. */
bool info_within(const struct fi_domain_attr *h, const struct fi_domain_attr *d, uint32_t version)
{
	if (h->max_ep_stx_ctx > d->max_ep_stx_ctx || h->max_ep_srx_ctx > d->max_ep_srx_ctx)
		INFO(CORE, "hints: domain_attr max_ep_stx_ctx or max_ep_srx_ctx: there are %zu and %zu\n", d->max_ep_stx_ctx,
		     d->max_ep_srx_ctx);
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return true;
	if (h->cntr_cnt > d->cntr_cnt || h->mr_cnt > d->mr_cnt)
		return refuse("domain_attr cntr_cnt or mr_cnt");
	return h->max_err_data <= d->max_err_data || refuse("domain_attr max_err_data");
}

static bool at_most(const char *what, size_t n, size_t most)
{
	if (n > most)
		WARN(EP_CTRL, "%s of %zu: at most %zu can be had\n", what, n, most);
	return n <= most;
}

bool info_sizes(const struct fi_tx_attr *tx, const struct fi_rx_attr *rx)
{
	return (tx == NULL || at_most("tx_attr size", tx->size, MOST_QUEUE)) &&
	       (rx == NULL || (at_most("rx_attr size", rx->size, MOST_QUEUE) &&
			       at_most("rx_attr total_buffered_recv", rx->total_buffered_recv, MOST_BUFFERED)));
}

bool info_fits(const struct fi_info *h)
{
	if ((h->caps & ~ALL_CAPS) != 0)
		return refuse("caps");
	switch (h->addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case FI_ADDR_STR:
		break;
	default:
		return refuse("addr_format");
	}
	return (h->tx_attr == NULL || tx_fits(h->tx_attr)) && (h->rx_attr == NULL || rx_fits(h->rx_attr)) &&
	       (h->ep_attr == NULL || ep_fits(h->ep_attr)) && (h->domain_attr == NULL || domain_fits(h->domain_attr));
}
