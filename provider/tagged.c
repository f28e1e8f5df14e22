/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			    uint64_t tag, uint64_t ignore, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return call_recv(name, &(struct wanted){.iov = iov, .count = count, .from = from, .tagged = true, .tag = tag,
						.ignore = ignore, .flags = rx_flags(name) & ~FI_MULTI_RECV,
						.context = context});
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
			   uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	(void)desc;
	return tagged_recvv(fid, &iov, NULL, 1, from, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	if (!name->base->rx_selective)
		flags |= FI_COMPLETION;
	return call_recv(name, &(struct wanted){.iov = msg->msg_iov, .count = msg->iov_count, .from = msg->addr,
						.tagged = true, .tag = msg->tag, .ignore = msg->ignore, .flags = flags,
						.context = msg->context});
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			    uint64_t tag, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return call_send(name, iov, count, to, &tag, 0, tx_flags(name), context);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
			   void *context)
{
	const struct iovec iov = buffer(buf, len);

	(void)desc;
	return tagged_sendv(fid, &iov, NULL, 1, to, tag, context);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	return call_send(name, msg->msg_iov, msg->iov_count, msg->addr, &msg->tag, msg->data, tx_msg_flags(name, flags),
			 msg->context);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	const struct iovec iov = buffer(buf, len);

	return call_send(name_of(fid), &iov, 1, to, &tag, 0, FI_INJECT | NO_COMPLETION, NULL);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			       fi_addr_t to, uint64_t tag, void *context)
{
	const struct iovec iov = buffer(buf, len);
	struct ep *name = name_of(fid);

	(void)desc;
	return call_send(name, &iov, 1, to, &tag, data, tx_flags(name) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to,
				 uint64_t tag)
{
	const struct iovec iov = buffer(buf, len);

	return call_send(name_of(fid), &iov, 1, to, &tag, data, FI_INJECT | FI_REMOTE_CQ_DATA | NO_COMPLETION, NULL);
}

struct fi_ops_tagged xdpfab_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
