/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that endpoints share. The receives of a shared receive context are one queue; a
 * completion goes where the endpoint has it that the message was sent to, and what concerns
 * no message goes where the first of the endpoints has its own. A shared transmit context is
 * a name: operations of all endpoints of a domain go through one ring anyway.
 */
#include <stdlib.h>

#include "defer.h"
#include "inbox.h"

/* The context has queue and addresses of the oldest endpoint that is bound to it. */
static void adopt(struct ep *srx)
{
	srx->av = NULL;
	srx->rxcq = NULL;
	for (struct ep *ep = srx->dom->all; ep != NULL; ep = ep->next_of_all) {
		if (ep->srx != srx || ep->closing)
			continue;
		if (ep->av != NULL)
			srx->av = ep->av;
		if (ep->rxcq != NULL) {
			srx->rxcq = ep->rxcq;
			srx->rx_selective = ep->rx_selective;
		}
	}
}

int shared_bind(struct ep *ep, struct ep *srx)
{
	if (srx->dom != ep->dom)
		return -FI_EDOMAIN;
	if (ep->enabled || ep->srx != NULL)
		return -FI_EINVAL;
	inbox_close(ep);
	ep->inbox = srx->inbox;
	ep->srx = srx;
	srx->aliases++;
	return 0;
}

/* A context of sends has nothing that its endpoints need. So it is bound also to one that is
 * enabled, and closed also before its endpoints: Sandia OpenSHMEM does both where it has one
 * endpoint. The last of them frees it then. */
static void stx_release(struct stx *x)
{
	if (x->closed && x->refs == 0)
		free(x);
}

int shared_bind_tx(struct ep *ep, struct stx *stx)
{
	if (stx->dom != ep->dom)
		return -FI_EDOMAIN;
	if (ep->stx != NULL)
		return -FI_EINVAL;
	ep->stx = stx;
	stx->refs++;
	return 0;
}

void shared_leave_tx(struct ep *ep)
{
	if (ep->stx == NULL)
		return;
	ep->stx->refs--;
	stx_release(ep->stx);
}

int shared_enabled(struct ep *ep)
{
	if (ep->srx == NULL)
		return 0;
	if (ep->srx->av != NULL && ep->srx->av != ep->av)
		return -FI_EINVAL; /* all that share have one vector */
	adopt(ep->srx);
	return 0;
}

void shared_leave(struct ep *ep)
{
	match_forget(ep->inbox->q, ep);
	adopt(ep->srx);
	ep->srx->aliases--;
}

static int srx_close(struct fid *fid)
{
	struct ep *srx = container_of(fid, struct ep, fid.fid);
	struct domain *d = srx->dom;

	lock(d);
	if (srx->aliases > 0) {
		unlock(d);
		WARN(EP_CTRL, "shared receive context: %u endpoints use it: close them first\n", srx->aliases);
		return -FI_EBUSY;
	}
	srx->closing = true;
	defer_end(d, &(struct meant){.ep = srx}, FI_ECANCELED);
	inbox_close(srx);
	ep_unlist(srx);
	if (!d->forked)
		defer_start(d);
	unlock(d);
	free(srx);
	return 0;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_srx_ctx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **to, void *context)
{
	struct fi_rx_attr none = {.caps = 0}, *rx = attr == NULL ? &none : attr;
	struct domain *d = container_of(fid, struct domain, fid);
	struct fi_info info = {.caps = rx->caps == 0 ? RX_CAPS : rx->caps, .rx_attr = rx};
	struct ep *srx;
	int error = ep_new(d, &info, FI_CLASS_SRX_CTX, context, &srx);

	if (error != 0)
		return error;
	srx->fid.fid.ops = &srx_fid_ops;
	error = enter(d);
	if (error == 0) {
		error = d->dead ? -FI_ENETDOWN : inbox_open(srx);
		if (error == 0)
			ep_list(srx);
		unlock(d);
	}
	if (error != 0) {
		free(srx);
		return error;
	}
	*to = &srx->fid;
	return 0;
}

static int stx_close(struct fid *fid)
{
	struct stx *x = container_of(fid, struct stx, fid.fid);
	struct domain *d = x->dom;

	lock(d);
	d->refs--;
	x->closed = true;
	stx_release(x);
	unlock(d);
	return 0;
}

static struct fi_ops stx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

static ssize_t no_cancel(fid_t fid, void *context)
{
	(void)fid, (void)context;
	return -FI_ENOSYS;
}

static int no_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	(void)fid, (void)level, (void)name, (void)value, (void)len;
	return -FI_ENOPROTOOPT;
}

static int no_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid, (void)level, (void)name, (void)value, (void)len;
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = no_getopt,
	.setopt = no_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

int xdpfab_stx_ctx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **to, void *context)
{
	struct domain *d = container_of(fid, struct domain, fid);
	struct stx *x;
	int error;

	if (!info_sizes(attr, NULL))
		return -FI_EINVAL;
	x = calloc(1, sizeof *x);
	error = x == NULL ? -FI_ENOMEM : enter(d);
	if (error != 0) {
		free(x);
		return error;
	}
	x->dom = d;
	x->fid.fid = (struct fid){.fclass = FI_CLASS_STX_CTX, .context = context, .ops = &stx_fid_ops};
	x->fid.ops = &stx_ops;
	d->refs++;
	unlock(d);
	*to = &x->fid;
	return 0;
}
