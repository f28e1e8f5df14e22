/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of endpoints. There are no connections.
 */
#include "xdpfab.h"

static int getname(fid_t fid, void *to, size_t *len)
{
	const struct ep *ep = container_of(fid, struct ep, fid.fid)->base;
	struct addr own = ep->dom->own;
	const size_t room = *len;

	own.endpoint = ep->number;
	addr_write(&own, ep->dom->format, to, len);
	return *len > room ? -FI_ETOOSMALL : 0;
}

static int no_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid, (void)addr, (void)len;
	return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
	(void)ep, (void)addr, (void)len;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
	(void)ep, (void)addr, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	(void)pep, (void)handle, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm xdpfab_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_setname,
	.getname = getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};
