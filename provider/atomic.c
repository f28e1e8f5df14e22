/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"
#include "kernels.h"

static const uint8_t verbs[KERNEL_FORMS] = {
	[KERNEL_BASE] = XDPFAB_ATOMIC, [KERNEL_FETCH] = XDPFAB_FETCH, [KERNEL_COMPARE] = XDPFAB_COMPARE};

/* The most elements of an operation: it is taken whole, with its operands and its results. */
static size_t most(const struct domain *d, enum kernel_form form, uint32_t datatype)
{
	static const size_t lists[KERNEL_FORMS] = {[KERNEL_BASE] = 1, [KERNEL_FETCH] = 2, [KERNEL_COMPARE] = 3};

	return part_of(d) / 2 / lists[form] / kernel_size(datatype);
}

/* The most elements of one on the buffer of a receive, which a frame carries whole: behind the
 * longest headers, its own head with data; its answer has a head, too. */
static size_t most_tagged(const struct domain *d, enum kernel_form form, uint32_t op, uint32_t datatype)
{
	enum { HEADERS = 48 + 34, HEAD = 28 + 8, ANSWER = 4 };
	const size_t operands = (op == FI_ATOMIC_READ ? 0u : 1u) + (form == KERNEL_COMPARE ? 1u : 0u);
	const size_t room = d->g.mtu > HEADERS + HEAD ? d->g.mtu - HEADERS : HEAD;
	size_t n = room - ANSWER, least = most(d, form, datatype);

	if (operands > 0 && (room - HEAD) / operands < n)
		n = (room - HEAD) / operands;
	n = (n & ~(size_t)3) / kernel_size(datatype);
	return n < least ? n : least;
}

static int valid(const struct fid_ep *fid, enum kernel_form form, uint32_t datatype, uint32_t op, size_t *count)
{
	const struct ep *ep = container_of(fid, struct ep, fid);

	if (kernel_of(form, op, datatype) == NULL)
		return -FI_EOPNOTSUPP;
	if (count != NULL)
		*count = most(ep->base->dom, form, datatype);
	return 0;
}

/* Turns a list of elements into one of bytes. */
static int bytes_of(const struct fi_ioc *ioc, size_t count, size_t size, struct iovec *to, size_t *len)
{
	*len = 0;
	if (count > MOST_IOV)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > PART)
			return -FI_EMSGSIZE;
		to[i] = (struct iovec){ioc[i].addr, ioc[i].count * size};
		*len += to[i].iov_len;
	}
	return 0;
}

/* Says where at the peer the elements are. */
static int at(struct work *w, const struct fi_msg_atomic *msg, size_t count)
{
	size_t n = 0;

	if (msg->rma_iov_count == 0 || msg->rma_iov_count > MOST_IOV)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		const struct fi_rma_ioc *x = &msg->rma_iov[i];

		if (x->count > PART)
			return -FI_EMSGSIZE;
		n += x->count;
		w->places[i] = (struct place){.offset = x->addr, .key = x->key, .count = x->count};
	}
	w->e.offset = msg->rma_iov[0].addr;
	w->e.key = msg->rma_iov[0].key;
	w->place_count = msg->rma_iov_count == 1 ? 0 : msg->rma_iov_count;
	return n == count ? 0 : -FI_EINVAL;
}

/* Gives the operation its buffers; an operation that only reads has no operand. */
static int fill(struct work *w, const struct fi_msg_atomic *msg, const struct lists *l, uint64_t flags)
{
	const size_t size = kernel_size(msg->datatype);
	const bool reads = msg->op == FI_ATOMIC_READ;
	size_t count;
	int error = 0;

	if (!reads) {
		error = bytes_of(msg->msg_iov, msg->iov_count, size, w->from, &w->operand_len);
		w->from_count = msg->iov_count;
	}
	if (error == 0)
		error = bytes_of(l->compare, l->compare_count, size, w->compare, &w->compare_len);
	if (error == 0)
		error = bytes_of(l->result, l->result_count, size, w->result, &w->result_len);
	if (error != 0)
		return error;
	w->compare_count = l->compare_count;
	w->result_count = l->result_count;
	count = (reads ? w->result_len : w->operand_len) / size;
	if (count == 0 || (l->form == KERNEL_COMPARE && w->compare_len != w->operand_len) ||
	    (l->form != KERNEL_BASE && w->result_len != count * size))
		return -FI_EINVAL;
	if (count > ((flags & FI_TAGGED) != 0 ? most_tagged(w->ep->dom, l->form, msg->op, msg->datatype)
					      : most(w->ep->dom, l->form, msg->datatype)) ||
	    ((flags & FI_INJECT) != 0 && w->operand_len > INJECT_SIZE))
		return -FI_EMSGSIZE;
	w->e.count = (uint32_t)count;
	return at(w, msg, count);
}

/* Makes it one on the buffer of the receive that takes the key as a tag. Values come back from a
 * receive alone. */
static void tag(struct work *w, enum kernel_form form, uint64_t flags)
{
	static const uint8_t tagged[KERNEL_FORMS] = {[KERNEL_BASE] = XDPFAB_TAGGED_ATOMIC,
						     [KERNEL_FETCH] = XDPFAB_TAGGED_FETCH,
						     [KERNEL_COMPARE] = XDPFAB_TAGGED_COMPARE};

	w->e.verb = tagged[form];
	w->completion |= FI_TAGGED;
	if (form != KERNEL_BASE || (flags & FI_MATCH_COMPLETE) != 0)
		w->e.flags |= XDPFAB_MATCH;
}

/* Values to store, which a read lacks, are zeros on the way. */
int atomic_work(struct work *w, struct ep *name, const struct fi_msg_atomic *msg, const struct lists *l,
		uint64_t flags)
{
	int error = kernel_of(l->form, msg->op, msg->datatype) == NULL ? -FI_EOPNOTSUPP : 0;

	if (error == 0 && (flags & FI_TAGGED) != 0 && msg->rma_iov_count != 1)
		error = -FI_EINVAL; /* it is on one receive */
	if (error == 0)
		error = work_init(w, name, msg->addr, flags & ~FI_TAGGED, msg->context);
	if (error == 0)
		error = fill(w, msg, l, flags);
	if (error != 0)
		return error;
	w->counts = l->form == KERNEL_BASE ? CNTR_WRITE : CNTR_READ;
	w->completion = FI_ATOMIC | (l->form == KERNEL_BASE ? FI_WRITE : FI_READ);
	w->e.verb = verbs[l->form];
	if ((flags & FI_TAGGED) != 0)
		tag(w, l->form, flags);
	w->e.op = (uint8_t)msg->op;
	w->e.datatype = (uint8_t)msg->datatype;
	if ((flags & FI_REMOTE_CQ_DATA) != 0) {
		w->e.flags |= XDPFAB_DATA;
		w->e.data = msg->data;
	}
	return 0;
}

static ssize_t post(struct ep *name, const struct fi_msg_atomic *msg, const struct lists *l, uint64_t flags)
{
	struct work w;
	const int error = atomic_work(&w, name, msg, l, flags);

	return error != 0 ? error : op_post(&w);
}

/* An atomic at one place. */
static ssize_t post_at(struct ep *name, const struct fi_ioc *iov, size_t count, const struct lists *l, fi_addr_t to,
		       uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, uint64_t flags,
		       void *context)
{
	struct fi_rma_ioc there = {.addr = addr, .key = key};
	const struct fi_ioc *of = op == FI_ATOMIC_READ ? l->result : iov;
	const size_t n = op == FI_ATOMIC_READ ? l->result_count : count;

	for (size_t i = 0; i < n; i++)
		there.count += of[i].count;
	return post(name,
		    &(struct fi_msg_atomic){.msg_iov = iov, .iov_count = count, .addr = to, .rma_iov = &there,
					    .rma_iov_count = 1, .datatype = datatype, .op = op, .context = context},
		    l, flags);
}

static struct fi_ioc elements(const void *buf, size_t count)
{
	return (struct fi_ioc){.addr = (void *)(uintptr_t)buf, .count = count};
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc;
	return post_at(name, iov, count, &(struct lists){.form = KERNEL_BASE}, to, addr, key, datatype, op,
		       tx_flags(name), context);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t to, uint64_t addr,
			    uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = elements(buf, count);

	(void)desc;
	return atomic_writev(fid, &iov, NULL, 1, to, addr, key, datatype, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct ep *name = name_of(fid);

	return post(name, msg, &(struct lists){.form = KERNEL_BASE}, tx_msg_flags(name, flags));
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc iov = elements(buf, count);

	return post_at(name_of(fid), &iov, 1, &(struct lists){.form = KERNEL_BASE}, to, addr, key, datatype, op,
		       FI_INJECT | NO_COMPLETION, NULL);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
				 struct fi_ioc *result, void **result_desc, size_t result_count, fi_addr_t to,
				 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc, (void)result_desc;
	return post_at(name, iov, count,
		       &(struct lists){.form = KERNEL_FETCH, .result = result, .result_count = result_count}, to, addr,
		       key, datatype, op, tx_flags(name), context);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype datatype,
				enum fi_op op, void *context)
{
	const struct fi_ioc iov = elements(buf, count);
	struct fi_ioc into = elements(result, count);

	(void)desc, (void)result_desc;
	return atomic_readwritev(fid, &iov, NULL, 1, &into, NULL, 1, to, addr, key, datatype, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *result,
				   void **result_desc, size_t result_count, uint64_t flags)
{
	struct ep *name = name_of(fid);

	(void)result_desc;
	return post(name, msg, &(struct lists){.form = KERNEL_FETCH, .result = result, .result_count = result_count},
		    tx_msg_flags(name, flags));
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
				 const struct fi_ioc *compare, void **compare_desc, size_t compare_count,
				 struct fi_ioc *result, void **result_desc, size_t result_count, fi_addr_t to,
				 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *name = name_of(fid);

	(void)desc, (void)compare_desc, (void)result_desc;
	return post_at(name, iov, count,
		       &(struct lists){.form = KERNEL_COMPARE, .compare = compare, .compare_count = compare_count,
				       .result = result, .result_count = result_count},
		       to, addr, key, datatype, op, tx_flags(name), context);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare,
				void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = elements(buf, count), with = elements(compare, count);
	struct fi_ioc into = elements(result, count);

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_compwritev(fid, &iov, NULL, 1, &with, NULL, 1, &into, NULL, 1, to, addr, key, datatype, op,
				 context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, const struct fi_ioc *compare,
				   void **compare_desc, size_t compare_count, struct fi_ioc *result, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct ep *name = name_of(fid);

	(void)compare_desc, (void)result_desc;
	return post(name, msg,
		    &(struct lists){.form = KERNEL_COMPARE, .compare = compare, .compare_count = compare_count,
				    .result = result, .result_count = result_count},
		    tx_msg_flags(name, flags));
}

static int atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(ep, KERNEL_BASE, datatype, op, count);
}

static int atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(ep, KERNEL_FETCH, datatype, op, count);
}

static int atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(ep, KERNEL_COMPARE, datatype, op, count);
}

struct fi_ops_atomic xdpfab_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};

int xdpfab_query_atomic(struct fid_domain *d, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags)
{
	const enum kernel_form form = (flags & FI_FETCH_ATOMIC) != 0	 ? KERNEL_FETCH
				      : (flags & FI_COMPARE_ATOMIC) != 0 ? KERNEL_COMPARE
									 : KERNEL_BASE;
	const struct domain *dom = container_of(d, struct domain, fid);
	const int error = kernel_of(form, op, datatype) == NULL ? -FI_EOPNOTSUPP : 0;

	if ((flags & ~(uint64_t)(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED)) != 0 ||
	    (flags & (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	if (error == 0 && attr != NULL)
		*attr = (struct fi_atomic_attr){.count = (flags & FI_TAGGED) != 0 ? most_tagged(dom, form, op, datatype)
										  : most(dom, form, datatype),
						.size = kernel_size(datatype)};
	return error;
}
