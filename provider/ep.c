/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "defer.h"
#include "op.h"
#include "session.h"

enum { MULTI_RECV_MIN = 64 }; /* bytes */

/* Makes a call whose result, if there is one, is a number. */
static int call(struct domain *d, const char *verb, const char *text, uint64_t *number)
{
	struct reply r;
	const int error = talk_call(&d->g.talk, verb, text, -1, ANSWER_MS, &r);

	if (error != 0)
		WARN(EP_CTRL, "%s: %s\n", verb, r.text);
	else if (number != NULL)
		*number = json_number(r.result, 0);
	if (r.fd >= 0)
		close(r.fd);
	return error;
}

/* Has the daemon make the endpoint: its address is known from then on. */
static int make(struct ep *ep, uint16_t wanted)
{
	char number[8] = "-1", block[40] = "", text[200];
	uint64_t got = 0;
	int error;

	if (getrandom(&ep->identity, sizeof ep->identity, 0) != sizeof ep->identity)
		return -errno;
	if (wanted != 0)
		snprintf(number, sizeof number, "%u", wanted);
	if (ep->sep != NULL)
		snprintf(block, sizeof block, ",\"block\":%u,\"posts\":%s", ep->sep->number,
			 ep->fid.fid.fclass == FI_CLASS_TX_CTX ? "true" : "false");
	snprintf(text, sizeof text, "{\"number\":%s,\"origin\":%llu%s}", number, (unsigned long long)ep->identity,
		 block);
	error = call(ep->dom, "endpoint", text, &got);
	ep->number = (uint16_t)got;
	return error;
}

int block_make(struct ep *sep, uint16_t first)
{
	char text[60];
	uint64_t got = 0;
	int error;

	snprintf(text, sizeof text, "{\"number\":%d,\"length\":%zu}", first == 0 ? -1 : (int)first, sep->rx_size);
	error = call(sep->dom, "block", text, &got);
	sep->number = (uint16_t)got;
	return error;
}

void block_free(struct ep *sep)
{
	char text[8];

	snprintf(text, sizeof text, "%u", sep->number);
	if (!sep->dom->dead && !sep->dom->forked)
		call(sep->dom, "unblock", text, NULL);
}

/* A program that posts no receives needs nothing that tells of them, and to a transmit context
 * nobody comes. */
static int enable(struct ep *ep)
{
	char text[120];
	int error;

	if (ep->sep != NULL && ep->sep->av != NULL && ep->av == NULL)
		av_join(ep, ep->sep->av);
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (ep->av == NULL)
		return -FI_ENOAV;
	if ((ep->caps & (FI_SEND | FI_READ | FI_WRITE)) != 0 && ep->txcq == NULL && ep->cntr[CNTR_SEND] == NULL &&
	    ep->cntr[CNTR_READ] == NULL && ep->cntr[CNTR_WRITE] == NULL)
		return -FI_ENOCQ;
	error = shared_enabled(ep);
	if (error != 0)
		return error;
	ep->enabled = ep->fid.fid.fclass == FI_CLASS_TX_CTX;
	if (ep->enabled)
		return 0;
	snprintf(text, sizeof text, "{\"endpoint\":%u,\"on\":true,\"events\":true,\"messages\":%s,\"attends\":%s}",
		 ep->number, (ep->caps & FI_RECV) != 0 ? "true" : "false", ep->dom->g.attended ? "true" : "false");
	error = call(ep->dom, "serve", text, NULL);
	ep->enabled = error == 0;
	return error;
}

static int alias(struct ep *name, struct fi_alias *a)
{
	struct ep *ep = name->base, *other = calloc(1, sizeof *other);

	if (other == NULL)
		return -FI_ENOMEM;
	other->base = ep;
	other->fid = ep->fid;
	other->dom = ep->dom;
	other->tx_flags = name->tx_flags;
	other->rx_flags = name->rx_flags;
	if ((a->flags & FI_TRANSMIT) != 0)
		other->tx_flags = a->flags & ~(uint64_t)(FI_TRANSMIT | FI_RECV);
	if ((a->flags & FI_RECV) != 0)
		other->rx_flags = a->flags & ~(uint64_t)(FI_TRANSMIT | FI_RECV);
	ep->aliases++;
	*a->fid = &other->fid.fid;
	return 0;
}

/* The flags of one direction are read or set. */
static int op_flags(struct ep *name, bool set, uint64_t *flags)
{
	const uint64_t way = *flags & (FI_TRANSMIT | FI_RECV);
	uint64_t *own = way == FI_TRANSMIT ? &name->tx_flags : &name->rx_flags;

	if (way != FI_TRANSMIT && way != FI_RECV)
		return -FI_EINVAL;
	if (set)
		*own = *flags & ~way;
	else
		*flags = *own;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct ep *name = container_of(fid, struct ep, fid.fid);
	struct domain *d = name->dom;
	int error = enter(d);

	if (error != 0)
		return error;
	switch (command) {
	case FI_ENABLE:
		error = enable(name->base);
		break;
	case FI_ALIAS:
		error = alias(name, arg);
		break;
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		error = op_flags(name, command == FI_SETOPSFLAG, arg);
		break;
	default:
		error = -FI_ENOSYS;
	}
	unlock(d);
	return error;
}

static void unlink_ep(struct ep **at, struct ep *ep, size_t next)
{
	while (*at != NULL && *at != ep)
		at = (struct ep **)(void *)((char *)*at + next);
	if (*at == ep)
		*at = *(struct ep **)(void *)((char *)ep + next);
}

void ep_list(struct ep *ep)
{
	ep->next_of_all = ep->dom->all;
	ep->dom->all = ep;
	ep->dom->refs++;
}

void ep_unlist(struct ep *ep)
{
	unlink_ep(&ep->dom->all, ep, offsetof(struct ep, next_of_all));
	ep->dom->refs--;
}

void ep_unbind(struct ep *ep)
{
	if (ep->av != NULL)
		unlink_ep(&ep->av->eps, ep, offsetof(struct ep, next));
	if (ep->sep != NULL)
		ep->sep->aliases--;
	shared_leave_tx(ep);
	if (ep->txcq != NULL)
		ep->txcq->refs--;
	if (ep->rxcq != NULL)
		ep->rxcq->refs--;
	for (int i = 0; i < CNTR_KINDS; i++)
		if (ep->cntr[i] != NULL)
			ep->cntr[i]->refs--;
}

/* Its operations end, and nobody hears of that. */
static void ep_free(struct ep *ep)
{
	struct domain *d = ep->dom;
	char text[24];

	ep->closing = true;
	ops_leave(d, ep);
	defer_end(d, &(struct meant){.ep = ep}, FI_ECANCELED);
	peers_free(ep);
	inbox_close(ep);
	d->eps[ep->number] = NULL;
	if (!d->dead && !d->forked) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)ep->identity);
		call(d, "drop", text, NULL);
	}
	ep_unlist(ep);
	ep_unbind(ep);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct ep *name = container_of(fid, struct ep, fid.fid), *ep = name->base;
	struct domain *d = ep->dom;
	int error = 0;

	lock(d);
	if (name != ep) {
		ep->aliases--;
		free(name);
	} else if (ep->aliases > 0) {
		WARN(EP_CTRL, "endpoint: %u aliases of it are open\n", ep->aliases);
		error = -FI_EBUSY;
	} else {
		ep_free(ep);
		if (!d->forked)
			defer_start(d); /* its counters have moved, and the thread may be asleep */
	}
	unlock(d);
	return error;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = xdpfab_ep_bind,
	.control = ep_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct ep *ep = container_of(fid, struct ep, fid.fid)->base;
	ssize_t error = enter(ep->dom);

	if (error != 0)
		return error;
	if (!match_cancel(ep->inbox->q, context) && /* what is triggered has a context */
	    (context == NULL || defer_end(ep->dom, &(struct meant){.ep = ep, .name = context}, FI_ECANCELED) == 0))
		error = -FI_ENOENT;
	defer_start(ep->dom);
	if (ep->dom->in->room) /* whoever makes progress may be asleep */
		progress(ep->dom);
	unlock(ep->dom);
	return error;
}

int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	const struct ep *ep = container_of(fid, struct ep, fid.fid)->base;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof ep->min_multi_recv)
		return -FI_ETOOSMALL;
	memcpy(value, &ep->min_multi_recv, sizeof ep->min_multi_recv);
	*len = sizeof ep->min_multi_recv;
	return 0;
}

int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct ep *ep = container_of(fid, struct ep, fid.fid)->base;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len != sizeof ep->min_multi_recv)
		return -FI_EINVAL;
	memcpy(&ep->min_multi_recv, value, len);
	return 0;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

static void describe(struct ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	ep->caps = info->caps;
	ep->tx_flags = tx == NULL ? 0 : tx->op_flags;
	ep->rx_flags = rx == NULL ? 0 : rx->op_flags;
	ep->tx_size = tx == NULL || tx->size == 0 ? TX_SIZE : tx->size;
	ep->rx_size = rx == NULL || rx->size == 0 ? RX_SIZE : rx->size;
	ep->buffered = rx == NULL || rx->total_buffered_recv == 0 ? BUFFERED : rx->total_buffered_recv;
	ep->min_multi_recv = MULTI_RECV_MIN;
}

int ep_new(struct domain *d, const struct fi_info *info, size_t fclass, void *context, struct ep **to)
{
	struct ep *ep;

	if (!info_sizes(info->tx_attr, info->rx_attr))
		return -FI_EINVAL;
	*to = ep = calloc(1, sizeof *ep);
	if (ep == NULL)
		return -FI_ENOMEM;
	*ep = (struct ep){.fid = {.fid = {.fclass = fclass, .context = context, .ops = &fid_ops}, .ops = &ep_ops,
				  .cm = &xdpfab_cm_ops, .msg = &xdpfab_msg_ops, .rma = &xdpfab_rma_ops,
				  .tagged = &xdpfab_tagged_ops, .atomic = &xdpfab_atomic_ops,
				  .collective = &xdpfab_collective_ops},
			  .base = ep, .dom = d};
	describe(ep, info);
	return 0;
}

int ep_open(struct ep *ep, uint16_t number)
{
	struct domain *d = ep->dom;
	int error = enter(d);

	if (error == 0) {
		error = d->dead ? -FI_ENETDOWN : inbox_open(ep);
		if (error == 0) {
			error = make(ep, number);
			if (error != 0)
				inbox_close(ep);
		}
		if (error == 0) {
			ep_list(ep);
			d->eps[ep->number] = ep;
			if (ep->sep != NULL)
				ep->sep->aliases++;
		}
		unlock(d);
	}
	if (error != 0)
		free(ep);
	return error;
}

uint16_t ep_wanted(const struct fi_info *info)
{
	struct addr wanted = {.endpoint = 0};

	if (info->src_addr != NULL)
		addr_read(&wanted, info->addr_format, info->src_addr);
	return wanted.endpoint;
}

int xdpfab_endpoint(struct fid_domain *fid, struct fi_info *info, struct fid_ep **to, void *context)
{
	struct ep *ep;
	int error = ep_new(container_of(fid, struct domain, fid), info, FI_CLASS_EP, context, &ep);

	if (error == 0)
		error = ep_open(ep, ep_wanted(info));
	if (error == 0)
		*to = &ep->fid;
	return error;
}
