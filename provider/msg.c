/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			 void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return call_recv(name, &(struct wanted){.iov = iov, .count = count, .from = from, .flags = rx_flags(name),
						.context = context});
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	(void)desc;
	return msg_recvv(fid, &iov, NULL, 1, from, context);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	if (!name->base->rx_selective)
		flags |= FI_COMPLETION;
	return call_recv(name, &(struct wanted){.iov = msg->msg_iov, .count = msg->iov_count, .from = msg->addr,
						.flags = flags, .context = msg->context});
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			 void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return call_send(name, iov, count, to, NULL, 0, tx_flags(name), context);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	const struct iovec iov = buffer(buf, len);

	(void)desc;
	return msg_sendv(fid, &iov, NULL, 1, to, context);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	return call_send(name, msg->msg_iov, msg->iov_count, msg->addr, NULL, msg->data, tx_msg_flags(name, flags),
			 msg->context);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	const struct iovec iov = buffer(buf, len);

	return call_send(name_of(fid), &iov, 1, to, NULL, 0, FI_INJECT | NO_COMPLETION, NULL);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
			    void *context)
{
	const struct iovec iov = buffer(buf, len);
	struct ep *name = name_of(fid);

	(void)desc;
	return call_send(name, &iov, 1, to, NULL, data, tx_flags(name) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	const struct iovec iov = buffer(buf, len);

	return call_send(name_of(fid), &iov, 1, to, NULL, data, FI_INJECT | FI_REMOTE_CQ_DATA | NO_COMPLETION, NULL);
}

struct fi_ops_msg xdpfab_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
