/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory regions. Local buffers need none, so one without a right for peers is a name alone.
 * The others are of any memory: the program executes what peers do to them.
 */
#include <stdlib.h>

#include "xdpfab.h"

static int mr_close(struct fid *fid)
{
	struct mr *mr = container_of(fid, struct mr, fid.fid);
	struct domain *d = mr->dom;

	lock(d);
	if (mr->region.access != 0)
		regions_remove(&d->regions, mr->region.key);
	if (mr->cntr != NULL)
		mr->cntr->refs--;
	d->refs--;
	unlock(d);
	free(mr);
	return 0;
}

/* A region is there from its registration on. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static int mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct mr *mr = container_of(fid, struct mr, fid.fid);
	struct cntr *c = container_of(to, struct cntr, fid.fid);
	int error = 0;

	if (to->fclass == FI_CLASS_EP)
		return 0; /* each endpoint of the domain serves each region */
	if (to->fclass != FI_CLASS_CNTR || flags != FI_REMOTE_WRITE)
		return -FI_ENOSYS;
	lock(mr->dom);
	if (c->dom != mr->dom)
		error = -FI_EDOMAIN;
	else if (mr->cntr != NULL)
		error = -FI_EINVAL;
	else
		mr->cntr = c, c->refs++;
	unlock(mr->dom);
	return error;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

/* Peers name a byte by its offset and a region by the program's key; in the mode
 * FI_MR_BASIC, by its address and a key of the provider's. */
static int serve(struct domain *d, struct mr *mr, const struct fi_mr_attr *attr)
{
	struct region *r = &mr->region;
	int error;

	if (!d->g.attended) {
		WARN(MR, "a region for peers: the daemon is of a release that has peers operate on memfds alone; "
			 "install a later one\n");
		return -FI_ENOSYS;
	}
	r->access = ((attr->access & FI_REMOTE_READ) != 0 ? REGION_READ : 0) |
		    ((attr->access & FI_REMOTE_WRITE) != 0 ? REGION_WRITE : 0);
	r->incarnation = ++d->registered;
	r->key = d->basic ? r->incarnation : attr->requested_key;
	r->base = d->basic ? (uintptr_t)attr->mr_iov[0].iov_base : 0;
	r->owner = mr;
	if (!region_init(r, attr->mr_iov, attr->iov_count))
		return -FI_EINVAL;
	error = regions_add(&d->regions, r);
	return error == EEXIST ? -FI_ENOKEY : -error;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **to)
{
	struct domain *d = container_of(fid, struct domain, fid.fid);
	struct mr *mr;
	int error;

	if ((flags & ~(uint64_t)FI_RMA_EVENT) != 0)
		return -FI_EBADFLAGS;
	if (attr->iov_count == 0 || attr->iov_count > MOST_IOV || attr->mr_iov == NULL)
		return -FI_EINVAL;
	error = enter(d);
	if (error != 0)
		return error;
	mr = calloc(1, sizeof *mr);
	error = mr == NULL ? -FI_ENOMEM : 0;
	if (error == 0) {
		*mr = (struct mr){.dom = d, .region = {.key = attr->requested_key}};
		if ((attr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0)
			error = serve(d, mr, attr);
	}
	if (error == 0) {
		mr->fid.fid = (struct fid){.fclass = FI_CLASS_MR, .context = attr->context, .ops = &fid_ops};
		mr->fid.key = mr->region.key;
		d->refs++;
		*to = &mr->fid;
	} else {
		free(mr);
	}
	unlock(d);
	return error;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
		   uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = count, .access = access, .offset = offset,
					.requested_key = key, .context = context};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
		  uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr xdpfab_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
