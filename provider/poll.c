/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "xdpfab.h"

/* Whether a queue has completions, or a counter has changed since it was last looked at. */
static bool has_more(struct poll *p, size_t i)
{
	struct fid *fid = p->fids[i];

	if (fid->fclass == FI_CLASS_CQ)
		return container_of(fid, struct cq, fid.fid)->count > 0;
	const struct cntr *c = container_of(fid, struct cntr, fid.fid);
	const uint64_t now = c->value + c->errors;
	const bool more = now != p->seen[i];

	p->seen[i] = now;
	return more;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct poll *p = container_of(fid, struct poll, fid);
	int n = 0, error = enter(p->dom);

	if (error != 0)
		return error;
	progress(p->dom);
	for (size_t i = 0; i < p->count && n < count; i++)
		if (has_more(p, i))
			context[n++] = p->fids[i]->context;
	unlock(p->dom);
	return n;
}

static int poll_add(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct poll *p = container_of(fid, struct poll, fid);
	int error = 0;

	if (flags != 0 || (event->fclass != FI_CLASS_CQ && event->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	lock(p->dom);
	if (p->count == sizeof p->fids / sizeof *p->fids)
		error = -FI_ENOMEM;
	else
		p->seen[p->count] = 0, p->fids[p->count++] = event;
	unlock(p->dom);
	return error;
}

static int poll_del(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct poll *p = container_of(fid, struct poll, fid);
	int error = -FI_EINVAL;

	lock(p->dom);
	for (size_t i = 0; i < p->count && flags == 0; i++) {
		if (p->fids[i] == event) {
			p->count--;
			p->fids[i] = p->fids[p->count];
			p->seen[i] = p->seen[p->count];
			error = 0;
			break;
		}
	}
	unlock(p->dom);
	return error;
}

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

static int poll_close(struct fid *fid)
{
	struct poll *p = container_of(fid, struct poll, fid.fid);

	lock(p->dom);
	p->dom->refs--;
	unlock(p->dom);
	free(p);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **to)
{
	struct domain *d = container_of(fid, struct domain, fid);
	struct poll *p;

	if (attr != NULL && attr->flags != 0)
		return -FI_EINVAL;
	p = calloc(1, sizeof *p);
	if (p == NULL)
		return -FI_ENOMEM;
	p->dom = d;
	p->fid.fid = (struct fid){.fclass = FI_CLASS_POLL, .ops = &fid_ops};
	p->fid.ops = &poll_ops;
	lock(d);
	d->refs++;
	unlock(d);
	*to = &p->fid;
	return 0;
}

/* Prepares a wait for the descriptors of queues and counters. */
static int try_one(struct domain *d, struct waiter *w, bool (*has)(struct fid *), struct fid *fid)
{
	int error = enter(d);

	if (error != 0)
		return error;
	progress(d);
	if (has(fid) || !wait_arm(w, d))
		error = -FI_EAGAIN;
	unlock(d);
	return error;
}

static bool cq_has(struct fid *fid)
{
	return container_of(fid, struct cq, fid.fid)->count > 0;
}

static bool cntr_has(struct fid *fid)
{
	(void)fid;
	return false; /* the caller looks at its value */
}

int xdpfab_trywait(struct fid_fabric *f, struct fid **fids, int count)
{
	int error = 0;

	(void)f;
	for (int i = 0; i < count && error == 0; i++) {
		struct cq *cq = container_of(fids[i], struct cq, fid.fid);
		struct cntr *c = container_of(fids[i], struct cntr, fid.fid);

		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			error = try_one(cq->dom, &cq->waiter, cq_has, fids[i]);
			break;
		case FI_CLASS_CNTR:
			error = try_one(c->dom, &c->waiter, cntr_has, fids[i]);
			break;
		case FI_CLASS_EQ: /* its pipe can be read as long as there are events */
			break;
		default:
			error = -FI_EINVAL;
		}
	}
	return error;
}
