/* SPDX-License-Identifier: Apache-2.0 */
#include "auto.h"
#include "defer.h"

struct op *op_take(struct domain *d)
{
	struct op *op;

	if (d->free_count == 0)
		return NULL;
	op = &d->ops[d->free_ops[--d->free_count]];
	op->used = true;
	return op;
}

void op_free(struct domain *d, struct op *op)
{
	if (op->stream != NULL)
		stream_end(d, op);
	if (op->len > 0)
		arena_put(&d->g.space, op->at, op->len);
	op->used = op->open = op->outside = false;
	op->len = 0;
	op->of = NULL;
	op->ep = NULL;
	d->free_ops[d->free_count++] = (uint32_t)(op - d->ops);
}

static void tell(struct ep *ep, struct cntr *cntr, const struct cqe *c, bool wanted)
{
	if (cntr != NULL)
		cntr_add(cntr, c->err == 0, c->err != 0);
	if (ep->txcq != NULL && (c->err != 0 || wanted))
		cq_add(ep->txcq, c);
}

/* An operation is its endpoint's no longer. */
static void leave(struct op *op)
{
	op->ep->under_way--;
	if (op->stream != NULL)
		op->stream->ended = true; /* its buffers are the program's again */
	if (op->cntr != NULL)
		op->cntr->refs--;
	op->cntr = NULL;
	op->ep = NULL;
}

/* Tells the program how an operation has ended. Of an endpoint that is closed it hears
 * nothing. */
static void report(struct op *op, int error, int prov_errno)
{
	struct ep *ep = op->ep;
	struct cntr *cntr = op->cntr;

	if (ep == NULL)
		return;
	leave(op);
	tell(ep, cntr,
	     &(struct cqe){.e = {.op_context = op->context, .flags = op->flags}, .source = FI_ADDR_NOTAVAIL,
			   .err = error, .prov_errno = prov_errno},
	     op->wanted);
}

static struct cntr *counter_of(const struct work *w)
{
	return w->deferred ? w->cntr : w->ep->cntr[w->counts];
}

void work_failed(const struct work *w, int error, int prov_errno)
{
	tell(w->ep, counter_of(w),
	     &(struct cqe){.e = {.op_context = w->context, .flags = w->completion}, .source = FI_ADDR_NOTAVAIL,
			   .err = error, .prov_errno = prov_errno},
	     false);
}

void ops_leave(struct domain *d, const struct ep *ep)
{
	for (uint32_t i = 0; i < d->g.entries; i++)
		if (d->ops[i].used && d->ops[i].ep == ep)
			leave(&d->ops[i]);
}

void op_fail(struct domain *d, struct op *op, int error)
{
	report(op, error, XDPFAB_NOT_EXECUTED << 16);
	op_free(d, op);
}

static void take_result(const struct domain *d, const struct op *op, const struct xdpfab_completion *c)
{
	const uint8_t *from = op->outside ? d->g.data + op->result : c->result;
	const uint32_t room = op->outside ? op->result_len : XDPFAB_INLINE_RESULT;
	uint32_t n = op->result_len < room ? op->result_len : room;

	if (c->length < n)
		n = (uint32_t)c->length;
	iov_write(op->to, op->to_count, 0, from, n);
}

static void complete(struct domain *d, const struct xdpfab_completion *c)
{
	struct op *op = c->cookie < d->g.entries ? &d->ops[c->cookie] : NULL;
	int error = error_of(c);

	if (op == NULL || !op->used)
		return;
	if (op->part) {
		stream_part_done(d, op, c);
		return;
	}
	if (!op->open) {
		if (error == 0 && op->result_len > 0 && op->stream == NULL && op->ep != NULL)
			take_result(d, op, c);
		report(op, error, c->outcome << 16 | c->status << 8 | c->reason);
	}
	if ((c->flags & XDPFAB_COMPLETED_OPEN) != 0)
		op->open = true; /* the arena is the daemon's until the outcome is known */
	else
		op_free(d, op);
}

size_t op_completions(struct domain *d)
{
	struct guest *g = &d->g;
	const uint64_t to = __atomic_load_n(&g->h->completed, __ATOMIC_ACQUIRE);
	const size_t n = (size_t)(to - g->seen);
	bool opened = false;

	if (n == 0 || n > g->entries)
		return 0;
	while (g->seen != to) {
		const struct xdpfab_completion c = g->cq[g->seen & (g->entries - 1)];

		g->seen++;
		opened |= (c.flags & XDPFAB_COMPLETED_OPEN) != 0;
		complete(d, &c);
	}
	__atomic_store_n(&g->h->seen, g->seen, __ATOMIC_RELEASE);
	if (opened) /* the daemon may wait for room to tell what has become known */
		guest_show(g);
	return n;
}

void op_end_all(struct domain *d)
{
	for (uint32_t i = 0; i < d->g.entries; i++) {
		struct op *op = &d->ops[i];

		if (!op->used || op->part)
			continue;
		if (!op->open)
			report(op, FI_ENETDOWN, XDPFAB_UNKNOWN << 16 | XDPFAB_REASON_HOST_LOST);
		op_free(d, op);
	}
}

static void copy_in(uint8_t *to, const struct work *w)
{
	iov_read(w->from, w->from_count, 0, to, w->operand_len);
	iov_read(w->compare, w->compare_count, 0, to + w->operand_len, w->compare_len);
}

/* Puts operands and extents where the entry says they are, and takes memory for the result.
 * Returns false if the arena is full. */
static bool place(struct domain *d, struct op *op, struct work *w)
{
	const size_t operands = (w->operand_len + w->compare_len + 7) & ~(size_t)7;
	const size_t list = w->place_count * sizeof(struct xdpfab_extent);
	struct xdpfab_places p;

	op->result_len = (uint32_t)w->result_len;
	if (w->operand_len + w->compare_len <= XDPFAB_INLINE && w->place_count == 0 &&
	    w->result_len <= XDPFAB_INLINE_RESULT) {
		copy_in(w->e.operands, w);
		return true;
	}
	if (!serve_take(d, operands + list + w->result_len, &op->at))
		return false;
	op->len = (uint32_t)(operands + list + w->result_len);
	op->result = op->at + (uint32_t)(operands + list);
	op->outside = true;
	copy_in(d->g.data + op->at, w);
	for (size_t i = 0; i < w->place_count; i++)
		extent_write(&w->places[i], 0, d->g.data + op->at + operands + i * sizeof(struct xdpfab_extent));
	p = (struct xdpfab_places){.operand = op->at, .compare = op->at + w->operand_len, .result = op->result,
				   .extents = op->at + operands, .extent_count = (uint32_t)w->place_count};
	memcpy(w->e.operands, &p, sizeof p);
	w->e.flags |= XDPFAB_OUTSIDE;
	return true;
}

/* Whether an operation goes part by part. */
static bool is_long(const struct work *w)
{
	return w->operand_len + w->compare_len + w->result_len > part_of(w->ep->dom);
}

int op_begin(struct work *w)
{
	struct ep *ep = w->ep;
	struct domain *d = ep->dom;
	struct op *op;
	int error;

	if (ep->under_way >= ep->tx_size || (ep->txcq != NULL && cq_full(ep->txcq)))
		return -FI_EAGAIN;
	op = op_take(d);
	if (op == NULL)
		return -FI_EAGAIN;
	op->ep = ep;
	op->context = w->context;
	op->flags = w->completion;
	op->cntr = counter_of(w);
	if (op->cntr != NULL)
		op->cntr->refs++;
	op->wanted = (w->flags & FI_COMPLETION) != 0;
	op->to_count = w->result_count;
	memcpy(op->to, w->result, w->result_count * sizeof *w->result);
	ep->under_way++;
	w->e.cookie = (uint64_t)(op - d->ops);
	error = -FI_EAGAIN;
	if (is_long(w) ? stream_begin(d, op, w) : place(d, op, w))
		error = peer_post(ep, w->to, &w->e);
	if (error != 0) {
		leave(op);
		op_free(d, op);
	} else if (op->stream != NULL) {
		stream_feed(d); /* whoever makes progress may be asleep */
		auto_feed(d);
	}
	return error;
}

static int trigger(const struct work *w)
{
	struct trigger t;
	const int error = trigger_of(w->ep, w->context, &t);

	return error != 0 ? error : defer_op(w, &t);
}

static int start(struct work *w)
{
	if (w->ep->dom->dead)
		return -FI_ENETDOWN;
	if (!w->ep->enabled)
		return -FI_EOPBADSTATE;
	return (w->flags & FI_TRIGGER) != 0 ? trigger(w) : op_begin(w);
}

ssize_t op_post(struct work *w)
{
	struct domain *d = w->ep->dom;
	ssize_t error = enter(d);

	if (error != 0)
		return error;
	error = start(w);
	if (error == -FI_EAGAIN && progress(d) > 0)
		error = start(w);
	unlock(d);
	return error;
}
