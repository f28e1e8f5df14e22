/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

/* Says where at the peer an operation is. */
static int at(struct work *w, const struct fi_rma_iov *iov, size_t count, size_t len)
{
	size_t n = 0;

	if (count == 0 || count > MOST_IOV)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		n += iov[i].len;
		w->places[i] = (struct place){.offset = iov[i].addr, .key = iov[i].key, .count = iov[i].len};
	}
	if (n != len)
		return -FI_EINVAL;
	w->e.offset = iov[0].addr;
	w->e.key = iov[0].key;
	w->place_count = count == 1 ? 0 : count;
	return 0;
}

static int transfer(struct work *w, const struct fi_msg_rma *msg, uint64_t flags)
{
	w->e.count = (uint32_t)(w->operand_len + w->result_len);
	w->e.datatype = XDPFAB_TYPE_UINT8;
	if ((flags & FI_REMOTE_CQ_DATA) != 0) {
		w->e.flags |= XDPFAB_DATA;
		w->e.data = msg->data;
	}
	return at(w, msg->rma_iov, msg->rma_iov_count, w->operand_len + w->result_len);
}

static int result(struct work *w, const struct iovec *iov, size_t count)
{
	if (count > MOST_IOV)
		return -FI_EINVAL;
	w->result_count = count;
	w->result_len = iov_len(iov, count);
	if (count > 0)
		memcpy(w->result, iov, count * sizeof *iov);
	return w->result_len > w->ep->dom->g.longest ? -FI_EMSGSIZE : 0;
}

int rma_work(struct work *w, struct ep *name, const struct fi_msg_rma *msg, bool reads, uint64_t flags)
{
	int error = work_init(w, name, msg->addr, reads ? flags & ~FI_INJECT : flags, msg->context);

	if (error == 0)
		error = reads ? result(w, msg->msg_iov, msg->iov_count)
			      : work_from(w, msg->msg_iov, msg->iov_count, flags);
	if (error == 0)
		error = transfer(w, msg, flags);
	w->counts = reads ? CNTR_READ : CNTR_WRITE;
	w->completion = FI_RMA | (reads ? FI_READ : FI_WRITE);
	w->e.verb = reads ? XDPFAB_READ : XDPFAB_WRITE;
	w->e.op = reads ? XDPFAB_OP_READ : XDPFAB_OP_WRITE;
	return error;
}

static ssize_t post_rma(struct ep *name, const struct fi_msg_rma *msg, bool reads, uint64_t flags)
{
	struct work w;
	const int error = rma_work(&w, name, msg, reads, flags);

	return error != 0 ? error : op_post(&w);
}

static ssize_t post_write(struct ep *name, const struct fi_msg_rma *msg, uint64_t flags)
{
	return post_rma(name, msg, false, flags);
}

static ssize_t post_read(struct ep *name, const struct fi_msg_rma *msg, uint64_t flags)
{
	return post_rma(name, msg, true, flags);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	return post_read(name, msg, tx_msg_flags(name, flags));
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			 uint64_t addr, uint64_t key, void *context)
{
	const struct fi_rma_iov there = {addr, iov_len(iov, count), key};
	struct ep *name = name_of(fid);

	(void)desc;
	return post_read(name, &(struct fi_msg_rma){.msg_iov = iov, .iov_count = count, .addr = from, .rma_iov = &there,
						    .rma_iov_count = 1, .context = context},
			 tx_flags(name));
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t addr,
			uint64_t key, void *context)
{
	const struct iovec iov = {buf, len};

	(void)desc;
	return rma_readv(fid, &iov, NULL, 1, from, addr, key, context);
}

/* A write to one place. */
static ssize_t write_to(struct ep *name, const struct iovec *iov, size_t count, uint64_t data, fi_addr_t to,
			uint64_t addr, uint64_t key, uint64_t flags, void *context)
{
	const struct fi_rma_iov there = {addr, iov_len(iov, count), key};

	return post_write(name, &(struct fi_msg_rma){.msg_iov = iov, .iov_count = count, .addr = to, .rma_iov = &there,
						     .rma_iov_count = 1, .context = context, .data = data},
			  flags);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	return post_write(name, msg, tx_msg_flags(name, flags));
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			  uint64_t addr, uint64_t key, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return write_to(name, iov, count, 0, to, addr, key, tx_flags(name), context);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr,
			 uint64_t key, void *context)
{
	const struct iovec iov = buffer(buf, len);

	(void)desc;
	return rma_writev(fid, &iov, NULL, 1, to, addr, key, context);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t addr, uint64_t key)
{
	const struct iovec iov = buffer(buf, len);

	return write_to(name_of(fid), &iov, 1, 0, to, addr, key, FI_INJECT | NO_COMPLETION, NULL);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
			     uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = buffer(buf, len);
	struct ep *name = name_of(fid);

	(void)desc;
	return write_to(name, &iov, 1, data, to, addr, key, tx_flags(name) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to,
			      uint64_t addr, uint64_t key)
{
	const struct iovec iov = buffer(buf, len);

	return write_to(name_of(fid), &iov, 1, data, to, addr, key, FI_INJECT | FI_REMOTE_CQ_DATA | NO_COMPLETION,
			NULL);
}

struct fi_ops_rma xdpfab_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
