/* SPDX-License-Identifier: Apache-2.0
 *
 * Scalable endpoints. Each context is an endpoint of its own. Receive contexts have numbers one
 * after the other, of which the first is the scalable endpoint's; what transmit contexts post
 * comes from that one. A receive context of a peer is in the upper bits of its fi_addr_t.
 */
#include <stdlib.h>

#include "op.h"

static int sep_close(struct fid *fid)
{
	struct ep *sep = container_of(fid, struct ep, fid.fid);
	struct domain *d = sep->dom;

	lock(d);
	if (sep->aliases > 0) {
		unlock(d);
		WARN(EP_CTRL, "scalable endpoint: %u contexts of it are open: close them first\n", sep->aliases);
		return -FI_EBUSY;
	}
	block_free(sep);
	ep_unbind(sep);
	d->refs--;
	unlock(d);
	free(sep);
	return 0;
}

static int sep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	return to->fclass == FI_CLASS_AV || to->fclass == FI_CLASS_EQ ? xdpfab_ep_bind(fid, to, flags) : -FI_EINVAL;
}

static int sep_control(struct fid *fid, int command, void *arg)
{
	const struct ep *sep = container_of(fid, struct ep, fid.fid);

	(void)arg;
	return command != FI_ENABLE ? -FI_ENOSYS : sep->av == NULL ? -FI_ENOAV : 0; /* contexts are enabled each */
}

static struct fi_ops sep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = sep_close,
	.bind = sep_bind,
	.control = sep_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

/* Makes a context: the flags and sizes are those of its attributes, if there are any. */
static int context_new(struct ep *sep, struct fi_info *info, size_t fclass, int index, struct fid_ep **to,
		       void *context)
{
	struct domain *d = sep->dom;
	struct ep *ep;
	int error;

	if (index < 0 || (size_t)index >= (fclass == FI_CLASS_TX_CTX ? sep->tx_size : sep->rx_size))
		return -FI_EINVAL;
	error = ep_new(d, info, fclass, context, &ep);
	if (error != 0)
		return error;
	ep->sep = sep;
	error = ep_open(ep, fclass == FI_CLASS_TX_CTX ? 0 : (uint16_t)(sep->number + index));
	if (error != 0)
		return error;
	*to = &ep->fid;
	return 0;
}

static int sep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context)
{
	struct ep *sep = container_of(fid, struct ep, fid);
	struct fi_info info = {.caps = sep->caps & TX_CAPS, .tx_attr = attr};

	return context_new(sep, &info, FI_CLASS_TX_CTX, index, tx, context);
}

static int sep_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
	struct ep *sep = container_of(fid, struct ep, fid);
	struct fi_info info = {.caps = sep->caps & RX_CAPS, .rx_attr = attr};

	return context_new(sep, &info, FI_CLASS_RX_CTX, index, rx, context);
}

static ssize_t sep_cancel(fid_t fid, void *context)
{
	(void)fid, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_ep sep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = sep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = sep_tx_ctx,
	.rx_ctx = sep_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

static size_t contexts(size_t hinted)
{
	return hinted == 0 ? 1 : hinted;
}

int xdpfab_scalable_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **to, void *context)
{
	struct domain *d = container_of(fid, struct domain, fid);
	const size_t tx = contexts(info->ep_attr->tx_ctx_cnt), rx = contexts(info->ep_attr->rx_ctx_cnt);
	struct ep *sep;
	int error;

	if (tx > MOST_CONTEXTS || rx > MOST_CONTEXTS)
		return -FI_EINVAL;
	error = ep_new(d, info, FI_CLASS_SEP, context, &sep);
	if (error != 0)
		return error;
	sep->fid.fid.ops = &sep_fid_ops;
	sep->fid.ops = &sep_ops;
	sep->tx_size = tx; /* of it, the numbers of contexts */
	sep->rx_size = rx;
	error = enter(d);
	if (error == 0) {
		error = d->dead ? -FI_ENETDOWN : block_make(sep, ep_wanted(info));
		if (error == 0)
			d->refs++;
		unlock(d);
	}
	if (error != 0) {
		free(sep);
		return error;
	}
	*to = &sep->fid;
	return 0;
}
