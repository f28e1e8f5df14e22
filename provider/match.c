/* SPDX-License-Identifier: Apache-2.0 */

#include "match_state.h"

#include <string.h>

void list_insert(struct list *l, struct link *e, struct link *before)
{
	struct link *prev = before ? before->prev : l->last;

	*e = (struct link){l, prev, before};
	*(before ? &before->prev : &l->last) = e;
	*(prev ? &prev->next : &l->first) = e;
	l->n++;
}

void list_leave(struct link *e)
{
	struct list *l = e->in;

	if (!l)
		return;
	*(e->prev ? &e->prev->next : &l->first) = e->next;
	*(e->next ? &e->next->prev : &l->last) = e->prev;
	*e = (struct link){0};
	l->n--;
}

void *list_pop(struct list *l)
{
	struct link *e = l->first;

	if (e)
		list_leave(e);
	return e;
}

/* Where the arrays of a queue are, in bytes behind its beginning. */
struct plan {
	size_t receives, messages, inlines, chunks, end;
};

static struct plan plan(const struct match_config *c)
{
	struct plan p;

	p.receives = (sizeof(struct match) + 15) & ~(size_t)15;
	p.messages = p.receives + c->receives * sizeof(struct receive);
	p.inlines = p.messages + c->unexpected * sizeof(struct message);
	p.chunks = p.inlines + (size_t)c->unexpected * MATCH_INLINE;
	p.end = p.chunks + chunks_for(c->memory) * sizeof(struct chunk);
	return p;
}

size_t match_bytes(const struct match_config *config)
{
	return plan(config).end;
}

struct match *match_init(const struct match_config *config, void *memory)
{
	const struct plan p = plan(config);
	struct match *q = memory;
	uint8_t *base = memory;
	struct receive *receives = (void *)(base + p.receives);

	memset(memory, 0, p.chunks);
	q->config = *config;
	q->free = chunks_for(config->memory);
	q->pool = (void *)(base + p.messages);
	q->inlines = base + p.inlines;
	q->chunks = (void *)(base + p.chunks);
	for (uint32_t i = 0; i < config->receives; i++)
		list_push(&q->receives, &receives[i].at);
	for (uint32_t i = 0; i < config->unexpected; i++)
		list_push(&q->messages, &q->pool[i].at);
	return q;
}

static bool same(const struct match_source *a, const struct match_source *b)
{
	return a->network[0] == b->network[0] && a->network[1] == b->network[1] && a->network[2] == b->network[2] &&
	       a->endpoint == b->endpoint;
}

/* mq_matches reports whether a message is one of these, provided that both are tagged or
 * both are not. */
bool mq_matches(const struct match_pattern *p, const struct message *m)
{
	return (!p->tagged || ((m->tag ^ p->tag) & ~p->ignore) == 0) && (p->any_source || same(&p->from, &m->from));
}

/* mq_find returns the oldest posted receive that takes a message, or NULL. */
struct receive *mq_find(const struct match *q, const struct message *m)
{
	struct receive *n = (void *)q->posted[m->tagged].first;

	while (n && !mq_matches(&n->pattern, m))
		n = (void *)n->at.next;
	return n;
}

static bool take_place(struct match *q)
{
	const bool ok = q->config.take(q->config.sink);

	q->starved = q->starved || !ok;
	q->places += ok;
	return ok;
}

void mq_return_place(struct match *q)
{
	q->places--;
	q->config.put_back(q->config.sink);
}

/* mq_provide takes a place for a receive to be posted, and reports whether there is one,
 * and a node. */
bool mq_provide(struct match *q)
{
	if (q->receives.n <= q->reserved || !q->config.take(q->config.sink))
		return false;
	q->places++;
	return true;
}

/* mq_deliver fills a place with q->done. */
void mq_deliver(struct match *q)
{
	q->places--;
	q->config.deliver(q->config.sink, &q->done);
}

/* mq_make_room has the messages that were refused tried again. */
void mq_make_room(struct match *q)
{
	if (q->waiting && q->config.room)
		q->config.room(q->config.sink);
	q->waiting = q->cramped = false;
}

void mq_set_behind(struct match *q, struct receive *n, bool behind)
{
	if (n->behind == behind)
		return;
	n->behind = behind;
	q->behind += behind ? 1 : UINT32_MAX;
}

void mq_unlist(struct match *q, struct receive *n)
{
	list_leave(&n->at);
	mq_set_behind(q, n, false);
}

/* list_again puts a receive back at its place in posting order. */
static void list_again(struct match *q, struct receive *n)
{
	struct receive *e = (void *)q->posted[n->pattern.tagged].first;

	while (e && e->sequence < n->sequence)
		e = (void *)e->at.next;
	list_insert(&q->posted[n->pattern.tagged], &n->at, e ? &e->at : NULL);
}

/* mq_bind makes a message go into a receive. It returns false, and has changed nothing,
 * if the completion queue has no place for it. */
bool mq_bind(struct match *q, struct receive *n, struct message *m)
{
	const uint64_t left = n->size - n->used, size = mq_needs(m) < left ? mq_needs(m) : left;

	if (n->multi) {
		/* Unless this is the last message, the receive keeps the place that it has. */
		const bool last = left - size < n->min_free;

		if (!last && !take_place(q))
			return false;
		m->offset = n->used;
		n->used += size;
		if (last) {
			mq_unlist(q, n);
			mq_make_room(q); /* what it had no place for can go elsewhere */
		}
	} else {
		m->offset = 0;
		mq_unlist(q, n);
	}
	m->size = size;
	n->filling++;
	m->into = n;
	mq_aim(m);
	return true;
}

/* mq_unbind undoes mq_bind: the receive is as it was, unless other messages have gone
 * into a multi-receive behind this one. Then a hole is left. */
void mq_unbind(struct match *q, struct message *m)
{
	struct receive *n = m->into;

	m->into = NULL;
	n->filling--;
	if (n->claim) {
		mq_conclude(q, n, MATCH_LOST);
		return;
	}
	if (!n->multi) {
		list_again(q, n);
		return;
	}
	if (n->used == m->offset + m->size)
		n->used = m->offset;
	if (n->filling == 0)
		n->used = n->floor;
	if (waits(q, n))
		mq_return_place(q);
	else if (n->size - n->used >= n->min_free)
		list_again(q, n);
	else if (n->filling == 0)
		mq_conclude(q, n, MATCH_SPENT);
	else
		mq_return_place(q);
}

/* free_receive gives back a receive that is not posted and into which nothing goes. */
static void free_receive(struct match *q, struct receive *n)
{
	list_insert(&q->receives, &n->at, q->receives.first);
}

/* mq_conclude completes a receive that left the posted list and into which no message is
 * going. */
void mq_conclude(struct match *q, struct receive *n, enum match_reason why)
{
	q->done = (struct match_done){.context = n->context, .note = n->note, .reason = why,
	                              .tagged = n->pattern.tagged, .released = n->multi};
	free_receive(q, n);
	mq_deliver(q);
}

/* mq_complete delivers the completion of a message that is in its receive as a whole. */
void mq_complete(struct match *q, struct message *m)
{
	struct receive *n = m->into;
	struct match_done *d = &q->done;
	const uint64_t end = m->offset + m->size;

	*d = mq_about(m, n->context);
	d->note = n->note;
	d->silent = n->silent;
	d->received = m->size;
	if (m->op.is) {
		d->received = m->op.target ? m->length : 0;
		d->reason = m->op.misfit;
	} else if (m->size < m->length) {
		d->reason = MATCH_TRUNCATED;
	}
	n->filling--;
	if (n->multi) {
		d->offset = end - d->received;
		d->buffer = (uint8_t *)n->buffers[0].iov_base + d->offset;
		n->floor = n->floor > end ? n->floor : end;
	} else if (m->op.target) {
		d->buffer = m->op.target;
		d->offset = m->op.offset;
	}
	if (n->filling == 0 && !waits(q, n)) {
		d->released = n->multi;
		free_receive(q, n);
	} else if (n->filling == 0) {
		n->used = n->floor; /* behind it there may be holes, which messages have left */
	}
	mq_free_message(q, m);
	mq_deliver(q);
}

/* mq_offer gives a receive that is posted the held messages that it takes, the oldest
 * first, be all of it here or not: a receive has to take the message that a peek has told
 * of. */
void mq_offer(struct match *q, struct receive *n)
{
	struct message *m = (void *)q->held[n->pattern.tagged].first, *next;

	mq_set_behind(q, n, false);
	for (; m && waits(q, n); m = next) {
		next = (void *)m->at.next;
		/* An older receive that is behind goes first. */
		if (!mq_matches(&n->pattern, m) || (q->behind > 0 && mq_find(q, m) != n))
			continue;
		if (!mq_bind(q, n, m)) {
			mq_set_behind(q, n, true);
			return;
		}
		mq_move(q, m);
	}
}

/* mq_offer_all offers the held messages to all receives, in posting order. */
void mq_offer_all(struct match *q)
{
	for (int i = 0; i < 2; i++)
		for (struct receive *n = (void *)q->posted[i].first, *next; n; n = next) {
			next = (void *)n->at.next;
			mq_offer(q, n);
		}
}

/* mq_catch_up offers the held messages again if a receive had no place for one. All
 * receives are asked, since others may wait behind that one. */
void mq_catch_up(struct match *q)
{
	if (q->behind > 0)
		mq_offer_all(q);
}

void match_freed(struct match *q)
{
	if (!q->starved)
		return;
	q->starved = false;
	mq_catch_up(q);
	mq_make_room(q);
}

struct match_usage match_usage(const struct match *q)
{
	const uint32_t posted = q->posted[0].n + q->posted[1].n;

	return (struct match_usage){
		.posted = posted, .filling = q->config.receives - q->receives.n - posted,
		.held = holding(q), .claimed = q->claimed.n, .places = q->places, .inflows = q->inflows.n,
		.memory = (chunks_for(q->config.memory) - q->free) * MATCH_CHUNK - q->leased.bytes, .leased = q->leased,
	};
}
