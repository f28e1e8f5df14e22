/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of peers on memory of the program come as arrivals, and the program executes
 * them: all of a record in their order, each record once. The answer lies in the entry, or
 * in the arena until the daemon has taken the entry.
 */
#include <stdlib.h>

#include "operate.h"
#include "session.h"

enum { LENT = 64 }; /* answers in the arena at a time; a power of two */

struct lent {
	uint64_t until; /* the position of taken from which on it is free */
	uint32_t at, len;
};

struct answers {
	struct lent lent[LENT];
	uint32_t first, count;
};

static void reclaim(struct domain *d, struct answers *a)
{
	const uint64_t taken = __atomic_load_n(&d->g.h->taken, __ATOMIC_ACQUIRE);

	for (; a->count > 0 && a->lent[a->first].until <= taken; a->count--) {
		arena_put(&d->g.space, a->lent[a->first].at, a->lent[a->first].len);
		a->first = (a->first + 1) % LENT;
	}
}

bool serve_take(struct domain *d, size_t n, uint32_t *at)
{
	if (d->answers->count > 0)
		reclaim(d, d->answers);
	return arena_take(&d->g.space, n, at);
}

bool serve_lends(const struct domain *d)
{
	return d->answers->count > 0;
}

/* Reads the operation at an offset of a record, and moves the offset behind it. Returns
 * false if there is none. */
static bool next(const uint8_t *bytes, uint32_t len, uint32_t *at, struct operate_request *o)
{
	struct xdpfab_operation x;
	uint64_t end = (uint64_t)*at + sizeof x;

	if (end > len)
		return false;
	memcpy(&x, bytes + *at, sizeof x);
	if (end + x.operand + x.compare > len)
		return false;
	*o = (struct operate_request){.key = x.key, .offset = x.offset, .count = x.count, .total = x.total,
				      .incarnation = x.incarnation, .verb = x.verb, .op = x.op, .datatype = x.datatype,
				      .operand = bytes + end, .compare = bytes + end + x.operand,
				      .operand_bytes = x.operand, .compare_bytes = x.compare};
	*at = (uint32_t)((end + x.operand + x.compare + 7) & ~7ull);
	return true;
}

/* The longest answer to a record. */
static size_t longest(const struct xdpfab_arrival *r, const uint8_t *bytes)
{
	struct operate_request o;
	size_t n = r->count * sizeof(struct xdpfab_said);
	uint32_t at = 0;

	for (uint32_t i = 0; i < r->count && next(bytes, r->bytes, &at, &o); i++)
		n += operate_result(&o);
	return n;
}

/* A region's counter has all that may change the region, as fi_mr(3) says, and an endpoint's
 * has what returns nothing, as fi_endpoint(3) says. */
static void count(struct domain *d, const struct xdpfab_arrival *r, const struct operate_request *o,
		  const struct region *touched)
{
	const uint8_t verb = o->verb;
	const struct mr *mr = touched->owner;
	const struct ep *ep = d->eps[r->endpoint];
	const bool returns = verb == XDPFAB_READ || verb == XDPFAB_FETCH || verb == XDPFAB_COMPARE;
	const enum counted kind = returns ? CNTR_REMOTE_READ : CNTR_REMOTE_WRITE;

	if (ep != NULL && ep->cntr[kind] != NULL)
		cntr_add(ep->cntr[kind], 1, 0);
	if (mr->cntr != NULL && verb != XDPFAB_READ && !(verb == XDPFAB_FETCH && o->op == FI_ATOMIC_READ))
		cntr_add(mr->cntr, 1, 0);
}

/* Executes the operations of a record, and returns the length of the answer. */
static size_t execute(struct domain *d, const struct xdpfab_arrival *r, const uint8_t *bytes, uint8_t *answer)
{
	struct operate_request o;
	size_t n = r->count * sizeof(struct xdpfab_said);
	uint32_t at = 0;

	for (uint32_t i = 0; i < r->count && next(bytes, r->bytes, &at, &o); i++) {
		struct region *touched = NULL;
		struct xdpfab_said s = {.status = (uint8_t)operate(&d->regions, &o, answer + n, &touched)};

		if (s.status == OPERATE_OK) {
			s.length = (uint16_t)operate_result(&o);
			count(d, r, &o, touched);
		}
		memcpy(answer + i * sizeof s, &s, sizeof s);
		n += s.length;
	}
	return n;
}

bool serve_operations(struct domain *d, const struct xdpfab_arrival *r, const uint8_t *bytes)
{
	struct answers *a = d->answers;
	struct guest *g = &d->g;
	struct xdpfab_entry *e;
	struct xdpfab_places p = {.operand = 0};
	const size_t most = longest(r, bytes);
	uint32_t where = 0;
	size_t n;

	if (a->count > 0)
		reclaim(d, a);
	if (most > XDPFAB_INLINE && (a->count == LENT || !arena_take(&g->space, most, &where)))
		return false;
	e = guest_entry(g);
	if (e == NULL) {
		if (most > XDPFAB_INLINE)
			arena_put(&g->space, where, most);
		return false;
	}
	memset(e, 0, sizeof *e);
	n = execute(d, r, bytes, most > XDPFAB_INLINE ? g->data + where : e->operands);
	e->verb = XDPFAB_ANSWER;
	e->key = r->session;
	e->cookie = r->tag;
	e->count = (uint32_t)n;
	if (most > XDPFAB_INLINE) {
		p.operand = where;
		memcpy(e->operands, &p, sizeof p);
		e->flags = XDPFAB_OUTSIDE;
		a->lent[(a->first + a->count++) % LENT] =
			(struct lent){.until = g->posted, .at = where, .len = (uint32_t)most};
	}
	guest_show(g);
	return true;
}

struct answers *answers_new(void)
{
	return calloc(1, sizeof(struct answers));
}
