/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program asks for that waits for a counter: FI_TRIGGER of a call, and fi_control of
 * a domain.
 */
#include "defer.h"

static struct cntr *cntr_of(struct fid_cntr *fid)
{
	return fid == NULL ? NULL : container_of(fid, struct cntr, fid);
}

int trigger_of(const struct ep *ep, const void *context, struct trigger *t)
{
	const struct fi_triggered_context *c = context;

	if ((ep->caps & FI_TRIGGER) == 0)
		return -FI_EOPNOTSUPP;
	if (c == NULL)
		return -FI_EINVAL;
	if (c->event_type != FI_TRIGGER_THRESHOLD)
		return -FI_ENOSYS;
	*t = (struct trigger){.at = cntr_of(c->trigger.threshold.cntr), .threshold = c->trigger.threshold.threshold,
			      .name = context};
	return t->at == NULL || t->at->dom != ep->dom ? -FI_EINVAL : 0;
}

/* What is queued has no completion unless it asks for one. */
static int op_work(struct work *w, const struct fi_deferred_work *x, struct ep **ep)
{
	switch (x->op_type) {
	case FI_OP_SEND: {
		const struct fi_op_msg *o = x->op.msg;

		*ep = name_of(o->ep);
		return send_work(w, *ep, o->msg.msg_iov, o->msg.iov_count, o->msg.addr, NULL, o->msg.data, o->flags,
				 o->msg.context);
	}
	case FI_OP_TSEND: {
		const struct fi_op_tagged *o = x->op.tagged;

		*ep = name_of(o->ep);
		return send_work(w, *ep, o->msg.msg_iov, o->msg.iov_count, o->msg.addr, &o->msg.tag, o->msg.data,
				 o->flags, o->msg.context);
	}
	case FI_OP_READ:
	case FI_OP_WRITE:
		*ep = name_of(x->op.rma->ep);
		return rma_work(w, *ep, &x->op.rma->msg, x->op_type == FI_OP_READ, x->op.rma->flags);
	case FI_OP_ATOMIC:
		*ep = name_of(x->op.atomic->ep);
		return atomic_work(w, *ep, &x->op.atomic->msg, &(struct lists){.form = KERNEL_BASE}, x->op.atomic->flags);
	case FI_OP_FETCH_ATOMIC: {
		const struct fi_op_fetch_atomic *o = x->op.fetch_atomic;

		*ep = name_of(o->ep);
		return atomic_work(w, *ep, &o->msg,
				   &(struct lists){.form = KERNEL_FETCH, .result = o->fetch.msg_iov,
						   .result_count = o->fetch.iov_count},
				   o->flags);
	}
	default: {
		const struct fi_op_compare_atomic *o = x->op.compare_atomic;

		*ep = name_of(o->ep);
		return atomic_work(w, *ep, &o->msg,
				   &(struct lists){.form = KERNEL_COMPARE, .compare = o->compare.msg_iov,
						   .compare_count = o->compare.iov_count, .result = o->fetch.msg_iov,
						   .result_count = o->fetch.iov_count},
				   o->flags);
	}
	}
}

static int ready(const struct domain *d, const struct ep *name)
{
	if (name->dom != d)
		return -FI_EINVAL;
	return name->base->enabled || name->fid.fid.fclass == FI_CLASS_SRX_CTX ? 0 : -FI_EOPBADSTATE;
}

static int queue_op(struct domain *d, const struct fi_deferred_work *x, const struct trigger *t)
{
	struct work w;
	struct ep *name;
	int error = op_work(&w, x, &name);

	if (error == 0)
		error = name->base->enabled ? ready(d, name) : -FI_EOPBADSTATE;
	if (error == 0 && (w.flags & FI_TRIGGER) != 0)
		error = -FI_EBADFLAGS;
	if (error != 0)
		return error;
	w.deferred = true;
	w.cntr = cntr_of(x->completion_cntr);
	return defer_op(&w, t);
}

static int queue_receive(struct domain *d, const struct fi_deferred_work *x, const struct trigger *t)
{
	const bool tagged = x->op_type == FI_OP_TRECV;
	const struct fi_msg_tagged *m = &x->op.tagged->msg;
	const struct fi_msg *p = &x->op.msg->msg;
	const struct wanted r = tagged ? (struct wanted){.iov = m->msg_iov, .count = m->iov_count, .from = m->addr,
							 .tagged = true, .tag = m->tag, .ignore = m->ignore,
							 .flags = x->op.tagged->flags, .context = m->context}
				       : (struct wanted){.iov = p->msg_iov, .count = p->iov_count, .from = p->addr,
							 .flags = x->op.msg->flags, .context = p->context};
	const struct ep *name = name_of(tagged ? x->op.tagged->ep : x->op.msg->ep);
	const int error = name->base->srx != NULL ? -FI_EOPBADSTATE : ready(d, name);

	if (error != 0)
		return error;
	if ((r.flags & ~(uint64_t)(FI_COMPLETION | FI_MULTI_RECV | FI_MORE)) != 0)
		return -FI_EBADFLAGS;
	return r.count > MOST_IOV ? -FI_EINVAL : defer_receive(name->base, &r, cntr_of(x->completion_cntr), t);
}

static int queue_change(struct domain *d, const struct fi_deferred_work *x, const struct trigger *t)
{
	const struct change c = {.cntr = cntr_of(x->op.cntr->cntr), .value = x->op.cntr->value,
				 .sets = x->op_type == FI_OP_CNTR_SET};

	if (c.cntr == NULL || c.cntr->dom != d || x->completion_cntr != NULL)
		return -FI_EINVAL;
	return defer_change(d, &c, t);
}

static int queue(struct domain *d, const struct fi_deferred_work *x)
{
	const struct trigger t = {.at = cntr_of(x->triggering_cntr), .threshold = x->threshold, .name = x, .queued = true};
	const struct cntr *done = cntr_of(x->completion_cntr);

	if (d->dead)
		return -FI_ENETDOWN;
	if (t.at == NULL || t.at->dom != d || x->op.cntr == NULL || (done != NULL && done->dom != d))
		return -FI_EINVAL;
	switch (x->op_type) {
	case FI_OP_RECV:
	case FI_OP_TRECV:
		return queue_receive(d, x, &t);
	case FI_OP_SEND:
	case FI_OP_TSEND:
	case FI_OP_READ:
	case FI_OP_WRITE:
	case FI_OP_ATOMIC:
	case FI_OP_FETCH_ATOMIC:
	case FI_OP_COMPARE_ATOMIC:
		return queue_op(d, x, &t);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return queue_change(d, x, &t);
	}
	return -FI_ENOSYS;
}

/* A flush is of the whole domain, or of what waits for the counter that its work names. */
static void flush(struct domain *d, const struct fi_deferred_work *x)
{
	const struct cntr *at = x == NULL ? NULL : cntr_of(x->triggering_cntr);

	defer_end(d, &(struct meant){.at = at}, FI_ECANCELED);
}

int queue_control(struct fid *fid, int command, void *arg)
{
	struct domain *d = container_of(fid, struct domain, fid.fid);
	int error = enter(d);

	if (error != 0)
		return error;
	switch (command) {
	case FI_QUEUE_WORK:
		error = arg == NULL ? -FI_EINVAL : queue(d, arg);
		break;
	case FI_CANCEL_WORK:
		if (arg == NULL || defer_end(d, &(struct meant){.name = arg, .queued = true}, FI_ECANCELED) == 0)
			error = -FI_ENOENT;
		break;
	case FI_FLUSH_WORK:
		flush(d, arg);
		break;
	default:
		error = -FI_ENOSYS;
	}
	defer_start(d);
	unlock(d);
	return error;
}
