/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "op.h"

void cntr_moved(struct cntr *c)
{
	if (c->value + c->errors >= c->lowest)
		defer_moved(c);
	wait_tell(&c->waiter);
}

void cntr_add(struct cntr *c, uint64_t n, uint64_t errors)
{
	c->value += n;
	c->errors += errors;
	cntr_moved(c);
}

static uint64_t look(struct cntr *c, const uint64_t *what)
{
	uint64_t n;

	if (enter(c->dom) != 0)
		return *what;
	progress(c->dom);
	n = *what;
	unlock(c->dom);
	return n;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct cntr *c = container_of(fid, struct cntr, fid);

	return look(c, &c->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct cntr *c = container_of(fid, struct cntr, fid);

	return look(c, &c->errors);
}

/* Adds to a counter's words, or sets them. */
static int change(struct fid_cntr *fid, uint64_t *what, uint64_t to)
{
	struct cntr *c = container_of(fid, struct cntr, fid);
	const int error = enter(c->dom);

	if (error != 0)
		return error;
	*what = to;
	cntr_moved(c);
	defer_start(c->dom);
	unlock(c->dom);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &container_of(fid, struct cntr, fid)->value, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &container_of(fid, struct cntr, fid)->errors, value);
}

static int increase(struct fid_cntr *fid, uint64_t value, uint64_t errors)
{
	struct cntr *c = container_of(fid, struct cntr, fid);
	const int error = enter(c->dom);

	if (error != 0)
		return error;
	cntr_add(c, value, errors);
	defer_start(c->dom);
	unlock(c->dom);
	return 0;
}

static int cntr_plus(struct fid_cntr *fid, uint64_t value)
{
	return increase(fid, value, 0);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return increase(fid, 0, value);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct cntr *c = container_of(fid, struct cntr, fid);
	const int64_t deadline = deadline_of(timeout);
	int error = enter(c->dom);
	uint64_t errors;

	if (error != 0)
		return error;
	errors = c->errors;
	for (;;) {
		const int left = left_of(deadline);

		progress(c->dom);
		error = c->value >= threshold ? 0 : c->errors != errors ? -FI_EAVAIL : c->dom->dead ? -FI_ENETDOWN
											    : -FI_ETIMEDOUT;
		if (error != -FI_ETIMEDOUT || left == 0)
			break;
		wait_some(&c->waiter, c->dom, left);
	}
	unlock(c->dom);
	return error;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_plus,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int cntr_close(struct fid *fid)
{
	struct cntr *c = container_of(fid, struct cntr, fid.fid);
	struct domain *d = c->dom;

	lock(d);
	if (c->refs > 0) {
		unlock(d);
		WARN(CNTR, "counter: %u endpoints, operations and works use it: close, end or cancel them first\n", c->refs);
		return -FI_EBUSY;
	}
	for (struct cntr **at = &d->cntrs; *at != NULL; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	d->refs--;
	unlock(d);
	wait_close(&c->waiter);
	free(c);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&container_of(fid, struct cntr, fid.fid)->waiter, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = no_bind,
	.control = cntr_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **to, void *context)
{
	struct domain *d = container_of(fid, struct domain, fid);
	struct cntr *c;
	int error;

	if (d->forked)
		return -FI_ENODEV;
	if (attr != NULL && attr->events != FI_CNTR_EVENTS_COMP)
		return -FI_ENOSYS;
	c = calloc(1, sizeof *c);
	if (c == NULL)
		return -FI_ENOMEM;
	error = wait_open(&c->waiter, d, attr == NULL ? FI_WAIT_UNSPEC : attr->wait_obj);
	if (error != 0) {
		free(c);
		return error;
	}
	c->dom = d;
	c->fid.fid = (struct fid){.fclass = FI_CLASS_CNTR, .context = context, .ops = &fid_ops};
	c->fid.ops = &cntr_ops;
	c->lowest = UINT64_MAX;
	lock(d);
	d->refs++;
	c->next = d->cntrs;
	d->cntrs = c;
	unlock(d);
	*to = &c->fid;
	return 0;
}
