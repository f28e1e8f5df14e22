/* SPDX-License-Identifier: Apache-2.0 */

#include "match_state.h"

#include <string.h>

/* claimed_for returns the oldest message that is claimed for the context, or NULL. */
static struct message *claimed_for(const struct match *q, const void *context)
{
	struct message *m = (void *)q->claimed.first;

	while (m && m->context != context)
		m = (void *)m->at.next;
	return m;
}

/* fits reports whether the receive is one that can be posted. */
static bool fits(const struct match_receive *r)
{
	if (!r->multi)
		return r->count <= MATCH_BUFFERS;
	return !r->claim && r->count == 1 && r->buffers[0].iov_len >= (r->min_free ? r->min_free : 1);
}

/* set fills in a node that is not in use. */
static void set(struct receive *n, const struct match_receive *r, uint64_t sequence)
{
	n->pattern = r->pattern;
	n->sequence = sequence;
	n->context = r->context;
	n->note = r->note;
	n->claim = r->claim;
	n->silent = r->silent;
	n->multi = r->multi;
	n->min_free = r->min_free ? r->min_free : 1;
	n->used = n->floor = n->size = 0;
	n->filling = 0;
	n->behind = false;
	n->count = (uint32_t)r->count;
	if (r->count > 0)
		memcpy(n->buffers, r->buffers, r->count * sizeof *r->buffers);
	for (uint32_t i = 0; i < n->count; i++)
		n->size += n->buffers[i].iov_len;
}

enum match_result match_post(struct match *q, const struct match_receive *r)
{
	struct message *m = NULL;
	struct receive *n;

	if (q->closed)
		return MATCH_CLOSED;
	if (!fits(r))
		return MATCH_BAD;
	if (r->claim && !(m = claimed_for(q, r->context)))
		return MATCH_UNCLAIMED;
	if (r->reserved)
		q->reserved--;
	else if (!mq_provide(q))
		return MATCH_FULL;
	n = list_pop(&q->receives);
	set(n, r, ++q->sequence);
	if (m) {
		mq_bind(q, n, m);
		mq_move(q, m);
	} else {
		list_push(&q->posted[n->pattern.tagged], &n->at);
		mq_offer(q, n);
	}
	mq_make_room(q);
	return MATCH_OK;
}

enum match_result match_reserve(struct match *q, const struct match_receive *r)
{
	if (q->closed)
		return MATCH_CLOSED;
	if (!fits(r))
		return MATCH_BAD;
	if (!mq_provide(q))
		return MATCH_FULL;
	q->reserved++;
	return MATCH_OK;
}

void match_unreserve(struct match *q)
{
	q->reserved--;
	mq_return_place(q);
	mq_catch_up(q); /* a multi-receive may wait for that place */
	mq_make_room(q);
}

void match_cancel_reserved(struct match *q, const struct match_receive *r)
{
	q->reserved--;
	q->done = (struct match_done){.context = r->context, .note = r->note, .reason = MATCH_CANCELLED,
	                              .tagged = r->pattern.tagged, .released = r->multi};
	mq_deliver(q);
}

bool match_cancel(struct match *q, const void *context)
{
	struct receive *found = NULL;
	bool behind;

	for (int i = 0; i < 2; i++) {
		struct receive *n = (void *)q->posted[i].first;

		while (n && !(n->context == context && n->filling == 0))
			n = (void *)n->at.next;
		if (n && (!found || n->sequence < found->sequence))
			found = n;
	}
	if (!found)
		return false;
	behind = found->behind;
	mq_unlist(q, found);
	mq_conclude(q, found, MATCH_CANCELLED);
	if (behind)
		mq_offer_all(q); /* younger receives waited behind it */
	mq_make_room(q); /* what a multi-receive had no place for can be held */
	return true;
}

/* mq_about returns a message's meta-data. */
struct match_done mq_about(const struct message *m, void *context)
{
	return (struct match_done){.context = context, .to = m->to, .length = m->length, .tag = m->tag, .data = m->data,
	                           .tagged = m->tagged, .atomic = m->op.is, .has_data = m->has_data, .from = m->from};
}

bool match_peek(struct match *q, const struct match_pattern *p, enum match_found found, void *context,
                struct match_done *done)
{
	struct message *m = (void *)q->held[p->tagged].first;

	while (m && (!mq_matches(p, m) || (q->behind > 0 && mq_find(q, m))))
		m = (void *)m->at.next;
	if (!m) {
		*done = (struct match_done){.context = context, .tagged = p->tagged};
		return false;
	}
	*done = mq_about(m, context);
	if (found == MATCH_CLAIM) {
		list_leave(&m->at);
		m->context = context;
		list_push(&q->claimed, &m->at);
	} else if (found == MATCH_DISCARD) {
		mq_drop(q, m);
	}
	return true;
}

bool match_discard(struct match *q, void *context, struct match_done *done)
{
	struct message *m = claimed_for(q, context);

	if (!m) {
		*done = (struct match_done){.context = context};
		return false;
	}
	*done = mq_about(m, context);
	mq_drop(q, m);
	return true;
}

/* detach takes a message that is still coming away from its receive, because the queue is
 * being closed. A receive that does not wait for messages is cancelled when the last
 * message has left it. */
static void detach(struct match *q, struct message *m)
{
	struct receive *n = m->into;

	m->into = NULL;
	m->discarded = true;
	n->filling--;
	if (waits(q, n) || n->filling > 0)
		mq_return_place(q);
	else
		mq_conclude(q, n, MATCH_CANCELLED);
}

void match_close(struct match *q)
{
	struct link *e;

	if (q->closed)
		return;
	q->closed = true;
	q->waiting = false;
	for (struct match_inflow *in = (void *)q->inflows.first; in; in = (void *)in->at.next)
		if (in->current && in->current->into)
			detach(q, in->current);
	for (int i = 0; i < 2; i++) {
		while ((e = q->posted[i].first)) {
			mq_unlist(q, (void *)e);
			mq_conclude(q, (void *)e, MATCH_CANCELLED);
		}
		while ((e = q->held[i].first))
			mq_drop(q, (void *)e);
	}
	while ((e = q->claimed.first))
		mq_drop(q, (void *)e);
}

static void forget(struct list *l, const void *to)
{
	for (struct message *m = (void *)l->first; m; m = (void *)m->at.next)
		if (m->to == to)
			m->to = NULL;
}

void match_forget(struct match *q, const void *to)
{
	forget(&q->held[0], to);
	forget(&q->held[1], to);
	forget(&q->claimed, to);
}
