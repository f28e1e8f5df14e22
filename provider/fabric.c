/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "xdpfab.h"

static int fabric_close(struct fid *fid)
{
	struct fabric *f = container_of(fid, struct fabric, fid.fid);
	const uint32_t refs = __atomic_load_n(&f->refs, __ATOMIC_ACQUIRE);

	if (refs > 0) {
		WARN(FABRIC, "fabric %s: %u domains and event queues are open\n", f->name, refs);
		return -FI_EBUSY;
	}
	free(f);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

static int no_passive_ep(struct fid_fabric *f, struct fi_info *info, struct fid_pep **pep, void *context)
{
	(void)f, (void)info, (void)pep, (void)context;
	return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *f, struct fi_wait_attr *attr, struct fid_wait **wait)
{
	(void)f, (void)attr, (void)wait;
	return -FI_ENOSYS;
}

/* Peers of shared providers, which the provider is not. */
static int domain2(struct fid_fabric *f, struct fi_info *info, struct fid_domain **dom, uint64_t flags, void *context)
{
	return flags != 0 ? -FI_EOPNOTSUPP : xdpfab_domain(f, info, dom, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = xdpfab_domain,
	.passive_ep = no_passive_ep,
	.eq_open = xdpfab_eq_open,
	.wait_open = no_wait_open,
	.trywait = xdpfab_trywait,
	.domain2 = domain2,
};

int xdpfab_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fabric *f = calloc(1, sizeof *f);

	if (f == NULL)
		return -FI_ENOMEM;
	f->fid.fid = (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fid_ops};
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	strncpy(f->name, attr->name == NULL ? "" : attr->name, sizeof f->name - 1);
	*fabric = &f->fid;
	return 0;
}
