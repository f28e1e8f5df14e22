/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of arrivals. The daemon asks before it hands over a message for which it has no
 * room on lease.
 */
#include <stdlib.h>

#include "session.h"

enum {
	BURST = 256,	 /* records that one look takes */
	EVENTS = 65536, /* of a queue, beyond its size */
};

static struct match_message message_of(const struct xdpfab_arrival *r)
{
	return (struct match_message){.length = r->length, .tag = r->tag, .data = r->data,
				      .tagged = (r->flags & XDPFAB_ARRIVAL_TAGGED) != 0,
				      .has_data = (r->flags & XDPFAB_ARRIVAL_DATA) != 0,
				      .must_match = (r->flags & XDPFAB_ARRIVAL_MATCH) != 0, .source = r->source,
				      .form = r->form, .op = r->op, .datatype = r->datatype, .offset = r->offset};
}

static void tell_admission(struct domain *d, uint64_t session, const struct xdpfab_admission *x)
{
	struct xdpfab_entry e = {.verb = XDPFAB_ADMIT, .key = session};

	memcpy(e.operands, x, sizeof *x);
	guest_note(&d->g, &e);
}

static void lease(struct session *s, bool all, struct xdpfab_admission *x)
{
	/* Room that several share is nobody's in advance: it would be idle where it is not needed. */
	const struct match_room none = {0, 0}, r = s->ep->srx != NULL ? none : match_lease(s->ep->inbox->q, all);

	x->endpoint = s->ep->number;
	x->identity = s->ep->identity;
	x->room = (struct xdpfab_room){.messages = r.messages, .bytes = r.bytes};
}

/* How an atomic on a receive will end that is admitted. */
static uint8_t status_of(const struct session *s, void *values)
{
	enum match_reason why = MATCH_RECEIVED;

	if (!match_probe(s->in, &why, values))
		return XDPFAB_STATUS_OK;
	switch (why) {
	case MATCH_TRUNCATED:
		return XDPFAB_STATUS_OUT_OF_BOUNDS;
	case MATCH_MISPLACED:
		return XDPFAB_STATUS_MISALIGNED;
	case MATCH_UNSUPPORTED:
		return XDPFAB_STATUS_UNSUPPORTED;
	default:
		return XDPFAB_STATUS_OK;
	}
}

/* Tells the daemon that the message may come that a session has announced, if there is room
 * for it. */
static bool admit(struct domain *d, struct session *s)
{
	const struct match_message *m = &s->message;
	struct xdpfab_admission x = {.values = 0};
	void *values = NULL;

	if (m->form != 0 && m->form != XDPFAB_ATOMIC) {
		if (!serve_take(d, m->length, &s->at)) {
			d->in->room = true; /* look again each time: nobody tells of the arena */
			return false;
		}
		s->len = (uint32_t)m->length;
		values = d->g.data + s->at;
		x.values = s->at;
		x.length = s->len;
	}
	match_drop(s->in); /* a session has one message at a time, whatever the daemon says */
	if (!match_admit(s->in, m)) {
		session_free_values(d, s);
		return false;
	}
	if (m->form != 0 && m->must_match)
		x.status = status_of(s, values);
	lease(s, true, &x);
	s->admitted = true;
	tell_admission(d, s->number, &x);
	return true;
}

/* Takes an announcement, and room that comes back with it. If that is all that is new, the
 * daemon may not have heard yet that the message is admitted. */
static void announced(struct domain *d, struct session *s, const struct xdpfab_arrival *r)
{
	match_reclaim(s->ep->inbox->q, (struct match_room){r->unused.messages, r->unused.bytes});
	if (s->admitted)
		return;
	if (!s->waiting) {
		struct session **last = &d->in->waiting;

		while (*last != NULL)
			last = &(*last)->waits;
		*last = s;
		s->waits = NULL;
		s->waiting = true;
		s->message = message_of(r);
	}
	if (admit(d, s))
		session_unwait(d->in, s);
}

/* Admits the messages for which there is room by now. */
static void retry(struct domain *d)
{
	struct session *s, *next;

	d->in->room = false; /* before looking: what makes room sets it afterwards */
	for (s = d->in->waiting; s != NULL; s = next) {
		next = s->waits;
		if (admit(d, s))
			session_unwait(d->in, s);
	}
}

/* Returns n bytes at a position of the ring, in one piece. */
static const uint8_t *piece(struct domain *d, uint64_t at, uint32_t n)
{
	const struct guest *g = &d->g;
	struct sessions *all = d->in;

	if ((at & (g->arrivals_len - 1)) + n <= g->arrivals_len)
		return g->arrivals + (at & (g->arrivals_len - 1));
	if (n > all->scratch_len) {
		uint8_t *more = realloc(all->scratch, n);

		if (more == NULL)
			return NULL;
		all->scratch = more;
		all->scratch_len = n;
	}
	guest_copy(g, at, all->scratch, n);
	return all->scratch;
}

static void begin(struct domain *d, struct session *s, const struct xdpfab_arrival *r, const uint8_t *bytes)
{
	const bool leased = (r->flags & XDPFAB_ARRIVAL_MATCHED) == 0;
	const struct match_message m = message_of(r);

	s->admitted = false;
	if (leased) {
		match_drop(s->in); /* as in admit */
		match_admit_leased(s->in, &m);
	}
	if (m.form == 0) {
		match_put(s->in, bytes, r->bytes);
	} else {
		const size_t n = m.form == XDPFAB_COMPARE ? r->bytes / 2 : r->bytes;

		match_combine(s->in, bytes, m.form == XDPFAB_COMPARE ? bytes + n : NULL, n, NULL);
		session_free_values(d, s);
	}
	if (leased) {
		struct xdpfab_admission x = {.values = 0};

		lease(s, false, &x);
		if (x.room.messages > 0 || x.room.bytes > 0)
			tell_admission(d, 0, &x);
	}
}

/* Tells of an operation with data that a peer has done on memory of the program. */
static void event(struct domain *d, const struct xdpfab_arrival *r)
{
	struct ep *ep = d->eps[r->endpoint];
	const struct addr from = session_sender(r);
	struct cqe c = {.e = {.flags = FI_REMOTE_CQ_DATA, .len = r->length, .data = r->data},
			.source = FI_ADDR_NOTAVAIL};

	if (ep == NULL || !ep->enabled || ep->rxcq == NULL)
		return;
	c.e.flags |= (r->flags & XDPFAB_ARRIVAL_TRANSFER) != 0 ? FI_RMA : FI_ATOMIC;
	c.e.flags |= (r->flags & XDPFAB_ARRIVAL_RETURNS) != 0 ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	if ((ep->caps & FI_SOURCE) != 0)
		c.source = av_find(ep->av, &from);
	cq_add(ep->rxcq, &c);
}

static bool take_operations(struct domain *d, const struct xdpfab_arrival *r, uint64_t at)
{
	const uint8_t *bytes = piece(d, at, r->bytes);

	return bytes != NULL && serve_operations(d, r, bytes);
}

static void take_record(struct domain *d, const struct xdpfab_arrival *r, uint64_t at)
{
	struct session *s;
	const uint8_t *bytes;

	if (r->kind == XDPFAB_EVENT) {
		event(d, r);
		return;
	}
	s = session_of(d, r);
	if (s == NULL)
		return; /* the endpoint has been closed */
	switch (r->kind) {
	case XDPFAB_END:
		session_end(d, s);
		return;
	case XDPFAB_ANNOUNCE:
		announced(d, s, r);
		return;
	case XDPFAB_DROP:
		match_drop(s->in);
		return;
	}
	bytes = piece(d, at, r->bytes);
	if (bytes == NULL)
		match_drop(s->in);
	else if (r->kind == XDPFAB_BEGIN)
		begin(d, s, r, bytes);
	else if (r->kind == XDPFAB_PART)
		match_put(s->in, bytes, r->bytes);
}

/* An event has no receive that bounds it. While the program does not read its completions, the
 * queue takes more than its size by so many; then events wait in the ring, and what is behind
 * them, too, for whatever endpoint it is. */
static bool waits(const struct domain *d, const struct xdpfab_arrival *r)
{
	const struct ep *ep = d->eps[r->endpoint];

	return r->kind == XDPFAB_EVENT && ep != NULL && ep->rxcq != NULL && ep->rxcq->count >= ep->rxcq->size + EVENTS;
}

size_t inbox_arrivals(struct domain *d)
{
	struct guest *g = &d->g;
	const uint64_t arrived = __atomic_load_n(&g->h->arrived, __ATOMIC_ACQUIRE);
	uint64_t at = g->read;
	size_t n = 0;

	for (; at != arrived && n < BURST; n++) {
		struct xdpfab_arrival r;

		guest_copy(g, at, &r, sizeof r);
		if (r.bytes > g->arrivals_len - sizeof r || waits(d, &r))
			break;
		if (r.kind != XDPFAB_OPERATE)
			take_record(d, &r, at + sizeof r);
		else if (!take_operations(d, &r, at + sizeof r))
			break;
		at += (sizeof r + r.bytes + 63) & ~(uint64_t)63;
	}
	if (n > 0)
		guest_has_read(g, at);
	if (d->in->room) /* the records may have made it */
		retry(d);
	return n;
}
