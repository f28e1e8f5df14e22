/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "inbox.h"
#include "op.h"

enum { USUAL_SIZE = 4096, FIRST_ROOM = 256 };

static struct cqe *at(const struct cq *cq, size_t i)
{
	return &cq->ring[(cq->first + i) & (cq->room - 1)];
}

bool cq_full(const struct cq *cq)
{
	return cq->count >= cq->size;
}

/* The queue becomes longer than its size by what was under way when it had reached it: so
 * completions are never lost, and what is posted and read needs no reservation. */
static bool grow(struct cq *cq)
{
	struct cqe *more = malloc(2 * cq->room * sizeof *more);

	if (more == NULL)
		return false;
	for (size_t i = 0; i < cq->count; i++)
		more[i] = *at(cq, i);
	free(cq->ring);
	cq->ring = more;
	cq->first = 0;
	cq->room *= 2;
	return true;
}

void cq_add(struct cq *cq, const struct cqe *c)
{
	if (cq->count == cq->room && !grow(cq)) {
		WARN(CQ, "no memory for completions: one has been lost\n");
		return;
	}
	*at(cq, cq->count++) = *c;
	wait_tell(&cq->waiter);
}

static size_t entry_len(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

static void pop(struct cq *cq)
{
	cq->first = (cq->first + 1) & (cq->room - 1);
	cq->count--;
	if (cq->starved && cq->count < cq->size) {
		cq->starved = false;
		inbox_freed(cq->dom, cq);
		progress(cq->dom); /* whoever makes progress may be asleep */
	}
}

/* Reads completions up to the next error. Each format is the beginning of the next longer
 * one. Work that is due may have waited for the room. The lock is held. */
static ssize_t take(struct cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	const size_t len = entry_len(cq->format);
	size_t n = 0;

	if (cq->count == 0)
		return cq->dom->dead ? -FI_ENETDOWN : -FI_EAGAIN;
	for (; n < count && cq->count > 0 && at(cq, 0)->err == 0; n++) {
		const struct cqe *c = at(cq, 0);

		memcpy((uint8_t *)buf + n * len, &c->e, len);
		if (source != NULL)
			source[n] = c->source;
		pop(cq);
	}
	defer_start(cq->dom);
	return n == 0 && count > 0 ? -FI_EAVAIL : (ssize_t)n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct cq *cq = container_of(fid, struct cq, fid);
	ssize_t n = enter(cq->dom);

	if (n != 0)
		return n;
	if (cq->count == 0)
		progress(cq->dom);
	else if (count == 0) /* counts on progress */
		progress(cq->dom);
	n = take(cq, buf, count, source);
	unlock(cq->dom);
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct cq *cq = container_of(fid, struct cq, fid);
	ssize_t n = enter(cq->dom);
	const struct cqe *c;

	(void)flags;
	if (n != 0)
		return n;
	if (cq->count == 0)
		progress(cq->dom);
	if (cq->count == 0 || at(cq, 0)->err == 0) {
		unlock(cq->dom);
		return -FI_EAGAIN;
	}
	c = at(cq, 0);
	buf->op_context = c->e.op_context;
	buf->flags = c->e.flags;
	buf->len = c->e.len;
	buf->buf = c->e.buf;
	buf->data = c->e.data;
	buf->tag = c->e.tag;
	buf->olen = c->olen;
	buf->err = c->err;
	buf->prov_errno = c->prov_errno;
	buf->err_data_size = 0; /* whatever memory the caller gives for it stays as it is */
	pop(cq);
	defer_start(cq->dom);
	unlock(cq->dom);
	return 1;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source, const void *cond,
			    int timeout)
{
	struct cq *cq = container_of(fid, struct cq, fid);
	const int64_t deadline = deadline_of(timeout);
	ssize_t n = enter(cq->dom);

	(void)cond; /* a threshold is a hint, to be woken more seldom */
	if (n != 0)
		return n;
	if (cq->waiter.obj == FI_WAIT_NONE) {
		unlock(cq->dom);
		return -FI_ENOSYS;
	}
	for (;;) {
		const int left = left_of(deadline);

		progress(cq->dom);
		n = take(cq, buf, count, source);
		if (n != -FI_EAGAIN || cq->signalled || left == 0)
			break;
		wait_some(&cq->waiter, cq->dom, left);
	}
	cq->signalled = false;
	unlock(cq->dom);
	return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct cq *cq = container_of(fid, struct cq, fid);
	const int error = enter(cq->dom);

	if (error != 0)
		return error;
	cq->signalled = true;
	cq->waiter.armed = true;
	wait_tell(&cq->waiter);
	unlock(cq->dom);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return error_text(prov_errno, buf, len);
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int cq_close(struct fid *fid)
{
	struct cq *cq = container_of(fid, struct cq, fid.fid);
	struct domain *d = cq->dom;

	lock(d);
	if (cq->refs > 0) {
		unlock(d);
		WARN(CQ, "completion queue: %u endpoints use it: close them first\n", cq->refs);
		return -FI_EBUSY;
	}
	d->refs--;
	unlock(d);
	wait_close(&cq->waiter);
	free(cq->ring);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&container_of(fid, struct cq, fid.fid)->waiter, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = no_bind,
	.control = cq_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **to, void *context)
{
	struct domain *d = container_of(fid, struct domain, fid);
	struct cq *cq;
	int error;

	if (d->forked)
		return -FI_ENODEV;
	if (attr->size > MOST_QUEUE) {
		WARN(CQ, "completion queue of %zu: at most %d can be had\n", attr->size, MOST_QUEUE);
		return -FI_EINVAL;
	}
	cq = calloc(1, sizeof *cq);
	if (cq == NULL)
		return -FI_ENOMEM;
	cq->ring = malloc(FIRST_ROOM * sizeof *cq->ring);
	error = cq->ring == NULL ? -FI_ENOMEM : wait_open(&cq->waiter, d, attr->wait_obj);
	if (error != 0) {
		free(cq->ring);
		free(cq);
		return error;
	}
	cq->room = FIRST_ROOM;
	cq->size = attr->size == 0 ? USUAL_SIZE : attr->size;
	cq->format = attr->format;
	cq->dom = d;
	cq->fid.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &fid_ops};
	cq->fid.ops = &cq_ops;
	lock(d);
	d->refs++;
	unlock(d);
	*to = &cq->fid;
	return 0;
}
