/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of sessions.
 */
#include <stdlib.h>

#include "session.h"

enum { CHAINS = 256 }; /* at first; a power of two */

struct sessions *sessions_new(void)
{
	struct sessions *s = calloc(1, sizeof *s);

	if (s != NULL)
		s->chains = calloc(CHAINS, sizeof *s->chains);
	if (s == NULL || s->chains == NULL) {
		free(s);
		return NULL;
	}
	s->chain_count = CHAINS;
	return s;
}

void sessions_room(struct sessions *s)
{
	s->room = true;
}

void session_unwait(struct sessions *all, struct session *s)
{
	if (!s->waiting)
		return;
	s->waiting = false;
	for (struct session **at = &all->waiting; *at != NULL; at = &(*at)->waits) {
		if (*at == s) {
			*at = s->waits;
			return;
		}
	}
}

void session_free_values(struct domain *d, struct session *s)
{
	if (s->len > 0)
		arena_put(&d->g.space, s->at, s->len);
	s->len = 0;
}

static void session_free(struct domain *d, struct session *s)
{
	session_unwait(d->in, s);
	session_free_values(d, s);
	match_end(s->in);
	free(s->in);
	free(s);
	d->in->count--;
}

void sessions_leave(struct domain *d, const struct ep *ep)
{
	for (size_t i = 0; i < d->in->chain_count; i++) {
		for (struct session **at = &d->in->chains[i]; *at != NULL;) {
			struct session *s = *at;

			if (s->ep != ep) {
				at = &s->chain;
				continue;
			}
			*at = s->chain;
			session_free(d, s);
		}
	}
}

void sessions_free(struct sessions *s)
{
	if (s == NULL)
		return;
	free(s->chains);
	free(s->scratch);
	free(s);
}

static struct session **chain_of(struct sessions *all, uint64_t number)
{
	return &all->chains[number & (all->chain_count - 1)];
}

/* Numbers are given one after another, so chains stay short. */
static void grow(struct sessions *all)
{
	const size_t n = all->chain_count;
	struct session **more = calloc(2 * n, sizeof *more), **former = all->chains;

	if (more == NULL)
		return; /* longer chains do as well */
	all->chains = more;
	all->chain_count = 2 * n;
	for (size_t i = 0; i < n; i++) {
		while (former[i] != NULL) {
			struct session *s = former[i], **to = chain_of(all, s->number);

			former[i] = s->chain;
			s->chain = *to;
			*to = s;
		}
	}
	free(former);
}

struct addr session_sender(const struct xdpfab_arrival *r)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct addr a = {.family = AF_UNSPEC, .endpoint = r->source};

	if (r->has_ip == 0) {
		memcpy(a.mac, r->mac, sizeof a.mac);
	} else if (memcmp(r->ip, mapped, sizeof mapped) == 0) {
		a.family = AF_INET;
		memcpy(a.ip, r->ip + sizeof mapped, 4);
	} else {
		a.family = AF_INET6;
		memcpy(a.ip, r->ip, sizeof a.ip);
	}
	return a;
}

/* Returns the session of a record, NULL if there is no endpoint for it. */
struct session *session_of(struct domain *d, const struct xdpfab_arrival *r)
{
	struct sessions *all = d->in;
	struct ep *ep = d->eps[r->endpoint];
	struct session *s = *chain_of(all, r->session), **to;
	struct match_source from;
	struct addr a;

	while (s != NULL && s->number != r->session)
		s = s->chain;
	if (s != NULL || r->kind == XDPFAB_END || ep == NULL || ep->inbox == NULL)
		return s;
	s = calloc(1, sizeof *s);
	if (s != NULL)
		s->in = malloc(match_inflow_bytes());
	if (s == NULL || s->in == NULL) {
		free(s);
		return NULL;
	}
	a = session_sender(r);
	from = inbox_source(&a);
	s->number = r->session;
	s->ep = ep;
	s->in = match_open(ep->inbox->q, s->in, &from, ep);
	if (all->count++ > all->chain_count)
		grow(all);
	to = chain_of(all, r->session);
	s->chain = *to;
	*to = s;
	return s;
}

void session_end(struct domain *d, struct session *s)
{
	for (struct session **at = chain_of(d->in, s->number); *at != NULL; at = &(*at)->chain) {
		if (*at == s) {
			*at = s->chain;
			session_free(d, s);
			return;
		}
	}
}
