/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include <arpa/inet.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "prov.h"

void info_fabric(const struct network *n, char *to, size_t room)
{
	uint8_t masked[16] = {0};
	char text[INET6_ADDRSTRLEN];

	if (n == NULL) {
		snprintf(to, room, "ethernet");
		return;
	}
	for (unsigned i = 0; i < n->prefix && i < 128; i++)
		masked[i / 8] = (uint8_t)(masked[i / 8] | (n->addr[i / 8] & (0x80 >> i % 8)));
	inet_ntop(n->family, masked, text, sizeof text);
	snprintf(to, room, "%s/%u", text, n->prefix);
}

static void *copy(const void *from, size_t len)
{
	void *to = malloc(len);

	if (to != NULL)
		memcpy(to, from, len);
	return to;
}

/* Of the two modes of memory registration before version 1.5, both are possible. */
static int mr_mode(uint32_t version, const struct fi_info *hints)
{
	const int wanted = hints == NULL || hints->domain_attr == NULL ? 0 : hints->domain_attr->mr_mode;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return wanted == FI_MR_BASIC ? FI_MR_BASIC : FI_MR_SCALABLE;
	return wanted == FI_MR_BASIC || wanted == FI_MR_SCALABLE ? wanted : 0;
}

/* Scalable endpoints are for those who ask: programs that see several contexts use them, and have
 * nothing of it here. */
static bool wants_contexts(const struct fi_info *h)
{
	return (h->caps & FI_NAMED_RX_CTX) != 0 ||
	       (h->ep_attr != NULL && (h->ep_attr->tx_ctx_cnt > 1 || h->ep_attr->rx_ctx_cnt > 1)) ||
	       (h->domain_attr != NULL && (h->domain_attr->max_ep_tx_ctx > 1 || h->domain_attr->max_ep_rx_ctx > 1));
}

/* What is left open, and what is only told to the program's own layers, is as hinted. */
static void echo(struct fi_info *i, const struct fi_info *hints)
{
	struct fi_domain_attr *d = i->domain_attr;

	if (hints->caps != 0)
		i->caps = hints->caps | FI_LOCAL_COMM | FI_REMOTE_COMM;
	if ((i->caps & (FI_MSG | FI_TAGGED)) != 0 && (i->caps & (FI_SEND | FI_RECV)) == 0)
		i->caps |= FI_SEND | FI_RECV;
	if ((i->caps & (FI_RMA | FI_ATOMIC)) != 0 &&
	    (i->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) == 0)
		i->caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	i->tx_attr->caps = i->caps & TX_CAPS;
	i->rx_attr->caps = i->caps & RX_CAPS;
	if (hints->tx_attr != NULL) {
		i->tx_attr->op_flags = hints->tx_attr->op_flags;
		if (hints->tx_attr->size != 0)
			i->tx_attr->size = hints->tx_attr->size;
	}
	if (hints->rx_attr != NULL) {
		i->rx_attr->op_flags = hints->rx_attr->op_flags;
		if (hints->rx_attr->size != 0)
			i->rx_attr->size = hints->rx_attr->size;
		if (hints->rx_attr->total_buffered_recv != 0)
			i->rx_attr->total_buffered_recv = hints->rx_attr->total_buffered_recv;
	}
	if (hints->ep_attr != NULL && hints->ep_attr->tx_ctx_cnt > 0)
		i->ep_attr->tx_ctx_cnt = hints->ep_attr->tx_ctx_cnt;
	if (hints->ep_attr != NULL && hints->ep_attr->rx_ctx_cnt > 0)
		i->ep_attr->rx_ctx_cnt = hints->ep_attr->rx_ctx_cnt;
	if (wants_contexts(hints))
		d->max_ep_tx_ctx = d->max_ep_rx_ctx = MOST_CONTEXTS;
	if (hints->domain_attr != NULL) {
		const struct fi_domain_attr *h = hints->domain_attr;

		if (h->threading != FI_THREAD_UNSPEC)
			d->threading = h->threading;
		if (h->control_progress != FI_PROGRESS_UNSPEC)
			d->control_progress = h->control_progress;
		if (h->data_progress != FI_PROGRESS_UNSPEC)
			d->data_progress = h->data_progress;
		if (h->resource_mgmt != FI_RM_UNSPEC)
			d->resource_mgmt = h->resource_mgmt;
		if (h->av_type != FI_AV_UNSPEC)
			d->av_type = h->av_type;
	}
	i->handle = hints->handle;
}

static void describe(struct fi_info *i, const struct offer *o)
{
	struct fi_domain_attr *d = i->domain_attr;

	i->caps = o->attended ? ALL_CAPS : ALL_CAPS & ~TARGET_CAPS;
	*i->tx_attr = (struct fi_tx_attr){.caps = TX_CAPS, .msg_order = ORDERS, .inject_size = INJECT_SIZE,
					  .size = TX_SIZE, .iov_limit = MOST_IOV, .rma_iov_limit = MOST_IOV};
	*i->rx_attr = (struct fi_rx_attr){.caps = i->caps & RX_CAPS, .msg_order = ORDERS, .total_buffered_recv = BUFFERED,
					  .size = RX_SIZE, .iov_limit = MOST_IOV};
	*i->ep_attr = (struct fi_ep_attr){.type = FI_EP_RDM, .protocol = PROTOCOL, .protocol_version = PROTOCOL_VERSION,
					  .max_msg_size = o->longer ? MOST_MESSAGE : SHORT_MESSAGE,
					  .max_order_raw_size = SIZE_MAX,
					  .max_order_war_size = SIZE_MAX, .max_order_waw_size = SIZE_MAX,
					  .mem_tag_format = 0xaaaaaaaaaaaaaaaa, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1};
	d->threading = FI_THREAD_SAFE;
	d->control_progress = d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = FI_AV_UNSPEC; /* either */
	d->mr_key_size = 8;
	d->cq_data_size = 8;
	d->cq_cnt = d->cntr_cnt = d->mr_cnt = 65536;
	d->ep_cnt = d->tx_ctx_cnt = d->rx_ctx_cnt = o->endpoints;
	d->max_ep_tx_ctx = d->max_ep_rx_ctx = 1;
	d->max_ep_stx_ctx = d->max_ep_srx_ctx = o->endpoints;
	d->mr_iov_limit = MOST_IOV;
	d->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

/* Makes the info of one address of a daemon's interface; n is NULL for its MAC. */
static struct fi_info *make(const struct offer *o, const struct network *n, uint32_t version,
			    const struct fi_info *hints)
{
	struct fi_info *i = fi_allocinfo();
	struct addr own = {.family = n == NULL ? AF_UNSPEC : n->family};
	char fabric[80], text[ADDR_TEXT];

	if (i == NULL)
		return NULL;
	describe(i, o);
	if (hints != NULL)
		echo(i, hints);
	i->domain_attr->mr_mode = mr_mode(version, hints);
	i->addr_format = n == NULL ? FI_ADDR_STR : n->family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	if (n == NULL)
		memcpy(own.mac, o->mac, sizeof own.mac);
	else
		memcpy(own.ip, n->addr, sizeof own.ip);
	i->src_addrlen = sizeof text;
	addr_write(&own, i->addr_format, text, &i->src_addrlen);
	i->src_addr = copy(text, i->src_addrlen);
	info_fabric(n, fabric, sizeof fabric);
	i->fabric_attr->name = strdup(fabric);
	i->fabric_attr->prov_version = xdpfab_provider.version;
	i->fabric_attr->api_version = version;
	i->domain_attr->name = strdup(o->name);
	return i;
}

/* What getinfo was asked for. */
struct wanted {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
};

/* Puts the number and the node of a source address into an info. Returns false if the
 * source is another interface. */
static bool set_source(struct fi_info *i, const struct addr *from)
{
	static const uint8_t any[16];
	struct addr own;

	addr_read(&own, i->addr_format, i->src_addr);
	if (from->family != AF_UNSPEC && memcmp(from->ip, any, sizeof any) != 0 &&
	    (from->family != own.family || memcmp(from->ip, own.ip, sizeof own.ip) != 0))
		return false;
	own.endpoint = from->endpoint;
	free(i->src_addr);
	i->src_addrlen = ADDR_TEXT;
	i->src_addr = calloc(1, ADDR_TEXT);
	if (i->src_addr != NULL)
		addr_write(&own, i->addr_format, i->src_addr, &i->src_addrlen);
	return i->src_addr != NULL;
}

static bool set_dest(struct fi_info *i, const struct addr *to)
{
	i->dest_addrlen = ADDR_TEXT;
	i->dest_addr = calloc(1, ADDR_TEXT);
	if (i->dest_addr != NULL)
		addr_write(to, i->addr_format, i->dest_addr, &i->dest_addrlen);
	return i->dest_addr != NULL;
}

/* Fills in source and destination: from node and service, and otherwise from the hints.
 * Returns false if the interface is not the one. */
static bool address(struct fi_info *i, const struct wanted *w)
{
	const struct fi_info *h = w->hints;
	const bool source = (w->flags & FI_SOURCE) != 0 || w->node == NULL;
	struct addr a;

	if (w->node != NULL || w->service != NULL) {
		if (addr_resolve(&a, i->addr_format, w->node, w->service, (w->flags & FI_NUMERICHOST) != 0) != 0)
			return false;
		if (source ? !set_source(i, &a) : !set_dest(i, &a))
			return false;
	}
	if (h != NULL && h->src_addr != NULL && (!source || (w->node == NULL && w->service == NULL)))
		if (!addr_read(&a, i->addr_format, h->src_addr) || !set_source(i, &a))
			return false;
	if (h != NULL && h->dest_addr != NULL && i->dest_addr == NULL)
		if (!addr_read(&a, i->addr_format, h->dest_addr) || !set_dest(i, &a))
			return false;
	return true;
}

/* Whether an info is of the names and the format that are hinted, and its daemon offers what is. */
static bool meant(const struct fi_info *i, const struct wanted *w)
{
	const struct fi_info *h = w->hints;
	const char *only = param_text("iface");

	if (only != NULL && strcmp(only, i->domain_attr->name) != 0)
		return false;
	if (h == NULL)
		return true;
	if (h->ep_attr != NULL && h->ep_attr->max_msg_size > i->ep_attr->max_msg_size)
		return false;
	if (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != i->addr_format &&
	    !(h->addr_format == FI_SOCKADDR && i->addr_format != FI_ADDR_STR))
		return false;
	if (h->domain_attr != NULL && !info_within(h->domain_attr, i->domain_attr, w->version))
		return false;
	if (h->domain_attr != NULL && h->domain_attr->name != NULL &&
	    strcasecmp(h->domain_attr->name, i->domain_attr->name) != 0)
		return false;
	return h->fabric_attr == NULL || h->fabric_attr->name == NULL ||
	       strcasecmp(h->fabric_attr->name, i->fabric_attr->name) == 0;
}

static void add(struct fi_info ***last, const struct offer *o, const struct network *n, const struct wanted *w)
{
	struct fi_info *i = make(o, n, w->version, w->hints);

	if (i == NULL)
		return;
	if ((i->caps & TARGET_CAPS) != 0 && !o->attended)
		INFO(FABRIC, "%s: the daemon has peers operate on memfds alone: install a later one\n", o->path);
	else if (meant(i, w) && address(i, w)) {
		**last = i;
		*last = &i->next;
		return;
	}
	fi_freeinfo(i);
}

/* The networks of the kind that a parameter wants first, or the others. */
static void add_networks(struct fi_info ***last, const struct offer *o, bool first, const struct wanted *w)
{
	const char *kind = param_text("addr");
	const sa_family_t wanted = kind == NULL		      ? AF_UNSPEC
				   : strcmp(kind, "ipv4") == 0 ? AF_INET
				   : strcmp(kind, "ipv6") == 0 ? AF_INET6
							       : AF_UNSPEC;

	for (size_t i = 0; i < o->network_count; i++)
		if ((wanted == AF_UNSPEC || o->networks[i].family == wanted) == first)
			add(last, o, &o->networks[i], w);
}

int xdpfab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	const struct wanted w = {version, node, service, flags, hints};
	struct fi_info **last = info;
	struct offer *offers;
	size_t n;

	*info = NULL;
	if (hints != NULL && !info_fits(hints))
		return -FI_ENODATA;
	n = offer_all(NULL, &offers);
	for (size_t k = 0; k < n; k++) {
		add_networks(&last, &offers[k], true, &w);
		add_networks(&last, &offers[k], false, &w);
		if (offers[k].network_count == 0)
			add(&last, &offers[k], NULL, &w);
	}
	free(offers);
	return *info == NULL ? -FI_ENODATA : 0;
}
