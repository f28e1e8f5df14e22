/* SPDX-License-Identifier: Apache-2.0 */

#include "match_state.h"

#include <string.h>

size_t match_inflow_bytes(void)
{
	return sizeof(struct match_inflow);
}

struct match_inflow *match_open(struct match *q, void *memory, const struct match_source *from, void *to)
{
	struct match_inflow *in = memory;

	*in = (struct match_inflow){.q = q, .from = *from, .to = to};
	list_push(&q->inflows, &in->at);
	return in;
}

void match_end(struct match_inflow *in)
{
	list_leave(&in->at);
	match_drop(in);
}

/* begin makes the message that begins the inflow's own. */
static struct message *begin(struct match_inflow *in, const struct match_message *w)
{
	in->own = (struct message){
		.in = in, .from = in->from, .to = in->to, .length = w->length, .tag = w->tag, .data = w->data,
		.tagged = w->tagged, .has_data = w->has_data, .op = mq_operation_of(w),
	};
	in->own.from.endpoint = w->source;
	return &in->own;
}

/* accept finds the place for a message that begins. It returns the message, which may
 * have moved into the pool, or NULL, and has changed nothing, if there is no room. */
static struct message *accept(struct match *q, struct message *m, bool must_match)
{
	struct receive *n = mq_find(q, m);

	if (!n)
		return must_match ? NULL : mq_hold(q, m);
	if (n->behind) /* older messages wait for it */
		return NULL;
	return mq_bind(q, n, m) ? m : NULL;
}

bool match_admit(struct match_inflow *in, const struct match_message *w)
{
	struct match *q = in->q;

	if (q->closed)
		return false;
	in->current = accept(q, begin(in, w), w->must_match);
	if (!in->current)
		q->waiting = true;
	return in->current != NULL;
}

/* mq_arrived is called when the last byte of a message has come. */
void mq_arrived(struct match_inflow *in)
{
	struct message *m = in->current;

	in->current = NULL;
	m->in = NULL;
	if (m->into)
		mq_complete(in->q, m);
}

void match_put(struct match_inflow *in, const void *piece, size_t n)
{
	struct message *m = in->current;

	if (!m)
		return;
	n = mq_least(n, m->length - m->got);
	if (m->into)
		mq_place(m, m->got, piece, n);
	else if (!m->discarded)
		mq_store(in->q, m, piece, n);
	m->got += n;
	if (m->got == m->length)
		mq_arrived(in);
}

uint64_t match_lacks(const struct match_inflow *in)
{
	return in->current ? in->current->length - in->current->got : 0;
}

void match_drop(struct match_inflow *in)
{
	struct match *q = in->q;
	struct message *m = in->current;
	struct receive *n;

	if (!m)
		return;
	in->current = NULL;
	n = m->into;
	if (n) {
		mq_unbind(q, m);
		if (waits(q, n))
			mq_offer(q, n);
	} else {
		list_leave(&m->at);
		mq_empty(q, m);
	}
	mq_free_message(q, m);
	mq_catch_up(q); /* a place may have been returned */
	mq_make_room(q);
}

/* mq_free_message gives back a message that is in no list and has no memory. */
void mq_free_message(struct match *q, struct message *m)
{
	if (m >= q->pool && m < q->pool + q->config.unexpected)
		list_insert(&q->messages, &m->at, q->messages.first);
}

/* leave_pool moves a message of which there is more to come from the pool into its
 * inflow. */
static struct message *leave_pool(struct match *q, struct message *m)
{
	struct match_inflow *in = m->in;

	in->own = *m;
	in->current = &in->own;
	list_insert(&q->messages, &m->at, q->messages.first);
	return &in->own;
}

/* mq_move brings what a held message has into its receive, and completes it if that is
 * all. */
void mq_move(struct match *q, struct message *m)
{
	list_leave(&m->at);
	mq_empty(q, m);
	if (m->in)
		leave_pool(q, m);
	else
		mq_complete(q, m);
}

/* mq_hold finds a place among the unexpected messages for a message that begins, and
 * memory for all of it. */
struct message *mq_hold(struct match *q, struct message *m)
{
	uint32_t n = m->length > MATCH_INLINE ? chunks_for(mq_least(m->length, q->free * MATCH_CHUNK)) : 0;
	struct message *to;

	if ((uint64_t)holding(q) + q->leased.messages >= q->config.unexpected ||
	    (m->length > MATCH_INLINE && m->length > q->free * MATCH_CHUNK)) {
		q->cramped = true;
		return NULL;
	}
	to = list_pop(&q->messages);
	*to = *m;
	to->reserved = n;
	q->free -= n;
	list_push(&q->held[m->tagged], &to->at);
	return to;
}

/* mq_drop drops a message that is held. If the rest of it is still coming, that is
 * dropped too. */
void mq_drop(struct match *q, struct message *m)
{
	list_leave(&m->at);
	mq_empty(q, m);
	if (m->in)
		leave_pool(q, m)->discarded = true;
	else
		mq_free_message(q, m);
	mq_make_room(q);
}

static uint8_t *inline_of(const struct match *q, const struct message *m)
{
	return q->inlines + (size_t)(m - q->pool) * MATCH_INLINE;
}

/* take_chunk returns a chunk that was reserved. */
static struct chunk *take_chunk(struct match *q)
{
	struct chunk *c = q->spare;

	if (c)
		q->spare = c->next;
	else
		c = &q->chunks[q->made++];
	c->next = NULL;
	return c;
}

/* mq_store appends data to what a held message has. */
void mq_store(struct match *q, struct message *m, const uint8_t *data, size_t n)
{
	if (n == 0)
		return;
	if (m->length <= MATCH_INLINE) {
		memcpy(inline_of(q, m) + m->got, data, n);
		return;
	}
	for (uint64_t at = m->got; n > 0;) {
		const size_t in = at % MATCH_CHUNK, part = mq_least(n, MATCH_CHUNK - in);

		if (in == 0) {
			struct chunk *c = take_chunk(q);

			*(m->tail ? &m->tail->next : &m->chunks) = c;
			m->tail = c;
		}
		memcpy(m->tail->bytes + in, data, part);
		at += part;
		data += part;
		n -= part;
	}
}

/* mq_empty gives back all memory of a message. What the message has goes into its
 * receive, if there is one now. */
void mq_empty(struct match *q, struct message *m)
{
	uint64_t at = 0;

	if (m->into && m->length <= MATCH_INLINE)
		mq_place(m, 0, inline_of(q, m), m->got);
	for (struct chunk *c = m->chunks, *next; c; c = next) {
		if (m->into)
			mq_place(m, at, c->bytes, mq_least(MATCH_CHUNK, m->got - at));
		at += MATCH_CHUNK;
		next = c->next;
		c->next = q->spare;
		q->spare = c;
	}
	q->free += m->reserved;
	m->chunks = m->tail = NULL;
	m->reserved = 0;
}

/* spend takes the room for a message of length bytes, and returns false if there is too
 * little. */
static bool spend(struct match_room *r, uint64_t length)
{
	const uint64_t bytes = length > MATCH_INLINE ? (uint64_t)chunks_for(mq_least(length, UINT32_MAX)) * MATCH_CHUNK : 0;

	if (r->messages == 0 || bytes > r->bytes)
		return false;
	r->messages--;
	r->bytes -= (uint32_t)bytes;
	return true;
}

struct match_room match_lease(struct match *q, bool all)
{
	const uint64_t used = (uint64_t)holding(q) + q->leased.messages, total = q->config.unexpected;
	const uint64_t messages = total > used ? total - used : 0;
	const uint64_t chunks = mq_least(q->free, (UINT32_MAX - q->leased.bytes) / MATCH_CHUNK);
	const bool worth = all || 2 * messages >= total ||
	                   (q->config.memory > 0 && 2 * chunks >= chunks_for(q->config.memory));
	struct match_room r = {0, 0};

	if (q->closed || q->cramped || !worth)
		return r;
	r.messages = (uint32_t)messages;
	r.bytes = (uint32_t)(chunks * MATCH_CHUNK);
	q->leased.messages += r.messages;
	q->leased.bytes += r.bytes;
	q->free -= chunks;
	return r;
}

void match_reclaim(struct match *q, struct match_room r)
{
	r.messages = (uint32_t)mq_least(r.messages, q->leased.messages);
	r.bytes = (uint32_t)mq_least(r.bytes, q->leased.bytes);
	if (!r.messages && !r.bytes)
		return;
	q->leased.messages -= r.messages;
	q->leased.bytes -= r.bytes;
	q->free += r.bytes / MATCH_CHUNK;
	mq_make_room(q);
}

void match_admit_leased(struct match_inflow *in, const struct match_message *w)
{
	struct match *q = in->q;
	const uint32_t before = q->leased.bytes;
	struct message *m;

	if (q->closed || !spend(&q->leased, w->length))
		return;
	q->free += (before - q->leased.bytes) / MATCH_CHUNK;
	m = begin(in, w);
	in->current = accept(q, m, false);
	if (!in->current) { /* for a multi-receive that lacks a place, or behind others for it */
		struct receive *n = mq_find(q, m);

		if (n)
			mq_set_behind(q, n, true);
		in->current = mq_hold(q, m);
	}
	if (in->current && in->current->into && q->cramped)
		mq_make_room(q); /* the room that it came for */
}
