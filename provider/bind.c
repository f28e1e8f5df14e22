/* SPDX-License-Identifier: Apache-2.0
 *
 * What is bound to an endpoint.
 */
#include "inbox.h"

static int bind_cq(struct ep *ep, struct cq *cq, uint64_t flags)
{
	if (cq->dom != ep->dom)
		return -FI_EDOMAIN;
	if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0 || (flags & (FI_TRANSMIT | FI_RECV)) == 0)
		return -FI_EBADFLAGS;
	if (((flags & FI_TRANSMIT) != 0 && ep->txcq != NULL) || ((flags & FI_RECV) != 0 && ep->rxcq != NULL))
		return -FI_EINVAL;
	if ((flags & FI_TRANSMIT) != 0) {
		ep->txcq = cq;
		ep->tx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	if ((flags & FI_RECV) != 0) {
		ep->rxcq = cq;
		ep->rx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	return 0;
}

static int bind_cntr(struct ep *ep, struct cntr *c, uint64_t flags)
{
	static const uint64_t kinds[CNTR_KINDS] = {
		[CNTR_SEND] = FI_SEND, [CNTR_RECV] = FI_RECV, [CNTR_READ] = FI_READ, [CNTR_WRITE] = FI_WRITE,
		[CNTR_REMOTE_READ] = FI_REMOTE_READ, [CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE};

	if (c->dom != ep->dom)
		return -FI_EDOMAIN;
	if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0)
		return -FI_EBADFLAGS;
	for (int i = 0; i < CNTR_KINDS; i++) {
		if ((flags & kinds[i]) == 0)
			continue;
		if (ep->cntr[i] != NULL)
			return -FI_EINVAL;
		ep->cntr[i] = c;
		c->refs++;
	}
	return 0;
}

void av_join(struct ep *ep, struct av *av)
{
	ep->av = av;
	ep->next = av->eps;
	av->eps = ep;
}

static int bind_av(struct ep *ep, struct av *av)
{
	if (av->dom != ep->dom)
		return -FI_EDOMAIN;
	if (ep->av != NULL)
		return -FI_EINVAL;
	av_join(ep, av);
	return 0;
}

int xdpfab_ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct ep *ep = container_of(fid, struct ep, fid.fid)->base;
	int error = enter(ep->dom);

	if (error != 0)
		return error;
	switch (to->fclass) {
	case FI_CLASS_CQ:
		error = bind_cq(ep, container_of(to, struct cq, fid.fid), flags);
		break;
	case FI_CLASS_CNTR:
		error = bind_cntr(ep, container_of(to, struct cntr, fid.fid), flags);
		break;
	case FI_CLASS_AV:
		error = bind_av(ep, container_of(to, struct av, fid.fid));
		break;
	case FI_CLASS_SRX_CTX:
		error = shared_bind(ep, container_of(to, struct ep, fid.fid));
		break;
	case FI_CLASS_STX_CTX:
		error = shared_bind_tx(ep, container_of(to, struct stx, fid.fid));
		break;
	case FI_CLASS_EQ: /* nothing is told of an endpoint without connections */
		break;
	default:
		error = -FI_ENOSYS;
	}
	unlock(ep->dom);
	return error;
}
