/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots of fi_ops and fi_ops_ep in which there is nothing.
 */
#include "xdpfab.h"

int no_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return -FI_ENOSYS;
}

int no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

int no_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid, (void)buf, (void)len;
	return -FI_ENOSYS;
}

int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

int no_tx_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

int no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

ssize_t no_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}
