/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory regions. Local buffers need none, so those are accepted for programs that register
 * all that they use. Regions that peers operate on are not implemented.
 */
#include <stdlib.h>

#include "xdpfab.h"

static int mr_close(struct fid *fid)
{
	struct mr *mr = container_of(fid, struct mr, fid.fid);

	lock(mr->dom);
	mr->dom->refs--;
	unlock(mr->dom);
	free(mr);
	return 0;
}

/* Nothing happens at a local region that could be bound to. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static int mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid;
	return to->fclass == FI_CLASS_EP && flags == 0 ? 0 : -FI_ENOSYS;
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

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **to)
{
	struct domain *d = container_of(fid, struct domain, fid.fid);
	struct mr *mr;

	if (d->forked)
		return -FI_ENODEV;
	if (flags != 0)
		return -FI_EBADFLAGS;
	if (attr->iov_count == 0 || attr->iov_count > MOST_IOV || attr->mr_iov == NULL)
		return -FI_EINVAL;
	if ((attr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) {
		WARN(MR, "a region for peers is not implemented by this provider: serve it with xdpfabd --region, or "
			 "with the Go library\n");
		return -FI_ENOSYS;
	}
	mr = calloc(1, sizeof *mr);
	if (mr == NULL)
		return -FI_ENOMEM;
	mr->dom = d;
	mr->fid.fid = (struct fid){.fclass = FI_CLASS_MR, .context = attr->context, .ops = &fid_ops};
	mr->fid.key = attr->requested_key;
	lock(d);
	d->refs++;
	unlock(d);
	*to = &mr->fid;
	return 0;
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
