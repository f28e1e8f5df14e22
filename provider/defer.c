/* SPDX-License-Identifier: Apache-2.0
 *
 * Each counter has a list of what waits for it, by threshold and then in the order of
 * queueing. Whoever moves the counter takes what is due from there to the list of its
 * endpoint, or of the domain if it is a change, and starts it from where nothing else is
 * under way: in progress, or at the end of a call. What finds no room to start stays the
 * first of its list, so that a look costs one attempt for each endpoint, whatever waits.
 * Whoever makes room tries again: completions, and reads of them, do so by themselves;
 * only of what the daemon takes from the ring nobody tells (due_room).
 */
#include "defer.h"

#include <stdlib.h>

#include "inbox.h"

enum deferred_kind { OPERATION, RECEIVE, CHANGE };

struct deferred {
	struct deferred *next;
	struct trigger t;
	enum deferred_kind kind;
	struct ep *ep; /* NULL for a change */
	struct cntr *done; /* of a receive that was queued: that counts its end */
	union {
		struct work op;
		struct wanted receive;
		struct change change;
	};
	struct iovec iov[MOST_IOV]; /* of a receive */
	uint8_t injected[];
};

static void append(struct works *all, struct deferred *w)
{
	if (all->first == NULL)
		all->first = w;
	else
		all->last->next = w;
	all->last = w;
	w->next = NULL;
}

static void prepend(struct works *all, struct deferred *w)
{
	if (all->first == NULL)
		all->last = w;
	w->next = all->first;
	all->first = w;
}

static struct deferred *pop(struct works *all)
{
	struct deferred *w = all->first;

	if (w != NULL)
		all->first = w->next;
	return w;
}

static void release(struct cntr *c)
{
	if (c != NULL)
		c->refs--;
}

static void hold(struct cntr *c)
{
	if (c != NULL)
		c->refs++;
}

static struct cntr *ends_at(const struct deferred *w)
{
	return w->kind == CHANGE ? w->change.cntr : w->kind == RECEIVE ? w->done : w->op.deferred ? w->op.cntr : NULL;
}

static void discard(struct domain *d, struct deferred *w)
{
	release(ends_at(w));
	release(w->t.at);
	d->deferred--;
	free(w);
}

/* Counts the end of a receive, which for one that was triggered its endpoint does. */
static void received(const struct deferred *w, bool ok)
{
	struct cntr *c = w->t.queued ? w->done : w->ep->cntr[CNTR_RECV];

	if (c != NULL)
		cntr_add(c, ok, !ok);
}

/* Ends work that has not started, and never will. Of an endpoint that is being closed only the
 * counter of queued work hears. */
static void end(struct domain *d, struct deferred *w, int error, uint32_t reason)
{
	if (w->ep != NULL && w->ep->closing) {
		if (ends_at(w) != NULL)
			cntr_add(ends_at(w), 0, 1);
	} else if (w->kind == OPERATION) {
		work_failed(&w->op, error, (int)(XDPFAB_NOT_EXECUTED << 16 | reason));
	} else if (w->kind == RECEIVE) {
		received(w, false);
		inbox_tell(w->ep, &(struct match_done){.context = w->receive.context, .tag = w->receive.tag},
			   FI_RECV | (w->receive.tagged ? FI_TAGGED : FI_MSG), error);
	}
	discard(d, w);
}

/* Queued work counts failures, too, as fi_trigger(3) says. */
static bool reached(const struct deferred *w)
{
	const struct cntr *c = w->t.at;

	return c->value + (w->t.queued ? c->errors : 0) >= w->t.threshold;
}

static void set_lowest(struct cntr *c)
{
	c->lowest = c->waiting.first == NULL ? UINT64_MAX : c->waiting.first->t.threshold;
}

/* Moves a counter's work that is due to where it starts. */
void defer_moved(struct cntr *c)
{
	struct domain *d = c->dom;
	struct works stays = {NULL, NULL};
	struct deferred *w;

	while (c->waiting.first != NULL && c->waiting.first->t.threshold <= c->value + c->errors) {
		w = pop(&c->waiting);
		if (reached(w)) {
			append(w->ep == NULL ? &d->due : &w->ep->due, w);
			d->due_count++;
			d->due_more = true;
		} else {
			append(&stays, w);
		}
	}
	if (stays.first != NULL) {
		stays.last->next = c->waiting.first;
		c->waiting.last = c->waiting.first == NULL ? stays.last : c->waiting.last;
		c->waiting.first = stays.first;
	}
	set_lowest(c);
}

static int start_receive(struct deferred *w)
{
	/* The receive may end at once, and what is queued is freed then. */
	const int error = w->ep->dom->dead ? -FI_ENETDOWN : call_receive(w->ep, &w->receive, w->t.queued ? w : NULL);

	if (error == 0 && !w->t.queued)
		discard(w->ep->dom, w);
	return error;
}

static void apply(const struct change *c)
{
	if (c->sets) {
		c->cntr->value = c->value;
		cntr_moved(c->cntr);
	} else {
		cntr_add(c->cntr, c->value, 0);
	}
}

/* Starts work, which is freed then. Returns 0, or a negative error if it has not started. */
static int start(struct domain *d, struct deferred *w)
{
	int error = 0;

	switch (w->kind) {
	case RECEIVE:
		return start_receive(w);
	case OPERATION:
		error = d->dead ? -FI_ENETDOWN : op_begin(&w->op);
		break;
	case CHANGE:
		apply(&w->change);
	}
	if (error == 0)
		discard(d, w);
	return error;
}

/* Starts what there is room for. */
static void run(struct domain *d, struct works *due)
{
	struct deferred *w;

	while ((w = pop(due)) != NULL) {
		const int error = start(d, w);

		if (error == -FI_EAGAIN) {
			prepend(due, w);
			d->due_room |= guest_full(&d->g) || serve_lends(d);
			return;
		}
		d->due_count--;
		if (error != 0)
			end(d, w, -error, 0);
	}
}

void defer_run(struct domain *d)
{
	d->due_room = false;
	do {
		d->due_more = false;
		run(d, &d->due);
		for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
			run(d, &ep->due);
	} while (d->due_more);
}

static struct deferred *new(struct domain *d, enum deferred_kind kind, size_t injected, const struct trigger *t)
{
	struct deferred *w = d->deferred < MOST_QUEUE ? malloc(sizeof *w + injected) : NULL;

	if (w != NULL) {
		w->t = *t;
		w->kind = kind;
		w->ep = NULL;
		w->done = NULL;
	}
	return w;
}

/* Takes it in, behind what has the same threshold. */
static int add(struct domain *d, struct deferred *w)
{
	struct cntr *c = w->t.at;
	struct deferred **at = &c->waiting.first;

	hold(c);
	hold(ends_at(w));
	d->deferred++;
	if (*at == NULL || c->waiting.last->t.threshold <= w->t.threshold) {
		append(&c->waiting, w);
	} else {
		while ((*at)->t.threshold <= w->t.threshold)
			at = &(*at)->next;
		w->next = *at;
		*at = w;
	}
	set_lowest(c);
	if (reached(w))
		defer_moved(c);
	defer_start(d);
	return 0;
}

/* Puts operands where they stay as they are. */
static void inject(struct deferred *w)
{
	struct work *op = &w->op;

	iov_read(op->from, op->from_count, 0, w->injected, op->operand_len);
	iov_read(op->compare, op->compare_count, 0, w->injected + op->operand_len, op->compare_len);
	op->from[0] = (struct iovec){w->injected, op->operand_len};
	op->compare[0] = (struct iovec){w->injected + op->operand_len, op->compare_len};
	op->from_count = op->compare_count = 1;
}

int defer_op(const struct work *op, const struct trigger *t)
{
	const bool injects = (op->flags & FI_INJECT) != 0;
	struct domain *d = op->ep->dom;
	struct deferred *w;

	if (av_addr(op->ep->av, op->to) == NULL)
		return -FI_EINVAL;
	w = new(d, OPERATION, injects ? op->operand_len + op->compare_len : 0, t);
	if (w == NULL)
		return -FI_EAGAIN;
	w->ep = op->ep;
	w->op = *op;
	if (injects)
		inject(w);
	return add(d, w);
}

int defer_receive(struct ep *ep, const struct wanted *r, struct cntr *done, const struct trigger *t)
{
	struct deferred *w = new(ep->dom, RECEIVE, 0, t);

	if (w == NULL)
		return -FI_EAGAIN;
	w->ep = ep;
	w->done = done;
	w->receive = *r;
	w->receive.iov = w->iov;
	if (r->count > 0)
		memcpy(w->iov, r->iov, r->count * sizeof *r->iov);
	return add(ep->dom, w);
}

int defer_change(struct domain *d, const struct change *c, const struct trigger *t)
{
	struct deferred *w = new(d, CHANGE, 0, t);

	if (w == NULL)
		return -FI_EAGAIN;
	w->change = *c;
	return add(d, w);
}

void defer_received(struct deferred *w, const struct match_done *done, bool ok)
{
	const bool many = (w->receive.flags & FI_MULTI_RECV) != 0;

	if (done->reason != MATCH_SPENT)
		received(w, ok);
	if (done->released || !many)
		discard(w->ep->dom, w);
}

static bool is_meant(const struct deferred *w, const struct meant *m)
{
	return (m->ep == NULL || w->ep == m->ep) && (m->at == NULL || w->t.at == m->at) &&
	       (m->name == NULL || (w->t.name == m->name && w->t.queued == m->queued));
}

/* Moves the work that is meant to the end of other work, and returns how much that is. */
static uint32_t take(struct works *from, const struct meant *m, struct works *to)
{
	struct works rest = {NULL, NULL};
	struct deferred *w;
	uint32_t n = 0;

	while ((w = pop(from)) != NULL) {
		const bool meant = is_meant(w, m);

		append(meant ? to : &rest, w);
		n += meant;
	}
	*from = rest;
	return n;
}

size_t defer_end(struct domain *d, const struct meant *m, int error)
{
	struct works all = {NULL, NULL};
	struct deferred *w;
	size_t n = 0;

	d->due_count -= take(&d->due, m, &all);
	for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
		d->due_count -= take(&ep->due, m, &all);
	for (struct cntr *c = d->cntrs; c != NULL; c = c->next) {
		take(&c->waiting, m, &all);
		set_lowest(c);
	}
	for (; (w = pop(&all)) != NULL; n++)
		end(d, w, error, error == FI_ECANCELED ? XDPFAB_REASON_CANCELLED : XDPFAB_REASON_HOST_LOST);
	return n;
}
