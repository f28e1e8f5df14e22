/* SPDX-License-Identifier: Apache-2.0
 *
 * The peers of an endpoint: the daemon gives each a number when it is first posted to. That
 * may take as long as the next hop takes to answer, so what is posted meanwhile waits here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "op.h"

/* A call for a peer's number. */
struct asked {
	struct call call;
	struct asked *next; /* of the endpoint's */
	struct ep *ep;	    /* NULL: closed */
	size_t at; /* slot */
	bool forgotten; /* the address has been removed meanwhile */
};

static void unlink_asked(struct asked *a)
{
	for (struct asked **at = &a->ep->asked; *at != NULL; at = &(*at)->next) {
		if (*at == a) {
			*at = a->next;
			return;
		}
	}
}

/* Completes an operation that has not been posted, unless the daemon has done so. */
static void fail(struct domain *d, const struct xdpfab_entry *e, int error)
{
	if (d->ops[e->cookie].used)
		op_fail(d, &d->ops[e->cookie], error);
}

static void post_waiting(struct domain *d, struct peer *p, int error)
{
	while (p->first != NULL) {
		struct post *w = p->first;

		if (error != 0) {
			fail(d, &w->e, error);
		} else {
			struct xdpfab_entry *to = guest_entry(&d->g);

			if (to == NULL) {
				d->crowded = true;
				return;
			}
			w->e.peer = p->number;
			*to = w->e;
			op_posted(&d->ops[w->e.cookie]);
		}
		p->first = w->next;
		free(w);
	}
}

static void answered(struct call *call, const struct reply *r)
{
	struct asked *a = container_of(call, struct asked, call);
	struct ep *ep = a->ep;

	if (r->fd >= 0)
		close(r->fd);
	if (ep != NULL) {
		struct peer *p = &ep->peers[a->at];
		const uint32_t number = (uint32_t)json_number(r->result, 0);

		unlink_asked(a);
		if (a->forgotten) {
			if (r->error == 0)
				guest_note(&ep->dom->g, &(struct xdpfab_entry){.verb = XDPFAB_FORGET, .peer = number});
		} else {
			p->asked = false;
			p->number = r->error == 0 ? number : 0;
			if (r->error != 0)
				WARN(EP_CTRL, "peer: %s\n", r->text);
			post_waiting(ep->dom, p, r->error);
			if (r->error == 0)
				guest_show(&ep->dom->g);
		}
	}
	free(a);
}

static int ask(struct ep *ep, fi_addr_t to, struct peer *p)
{
	struct asked *a = calloc(1, sizeof *a);
	struct addr own = *av_addr(ep->av, to);
	char addr[ADDR_TEXT], text[ADDR_TEXT + 80];

	if (a == NULL)
		return -FI_ENOMEM;
	*a = (struct asked){.call = {.done = answered}, .next = ep->asked, .ep = ep, .at = av_slot(ep->av, to)};
	ep->asked = a;
	p->asked = true;
	own.endpoint = (uint16_t)(own.endpoint + av_context(ep->av, to));
	addr_json(&own, addr, sizeof addr);
	snprintf(text, sizeof text, "{\"origin\":%llu,\"addr\":%s}", (unsigned long long)ep->identity, addr);
	INFO(EP_CTRL, "endpoint %u: peer %s\n", ep->number, addr);
	talk_begin(&ep->dom->g.talk, &a->call, "peer", text, -1);
	return 0;
}

/* Makes room for the peers of all addresses of the AV. */
static int grow(struct ep *ep)
{
	const size_t n = ep->av->room << ep->av->rx_bits;
	struct peer *more = realloc(ep->peers, n * sizeof *more);

	if (more == NULL)
		return -FI_ENOMEM;
	memset(more + ep->peer_count, 0, (n - ep->peer_count) * sizeof *more);
	ep->peers = more;
	ep->peer_count = n;
	return 0;
}

static int wait_in(struct peer *p, const struct xdpfab_entry *e)
{
	struct post *w = malloc(sizeof *w), **last = &p->first;

	if (w == NULL)
		return -FI_ENOMEM;
	*w = (struct post){.e = *e};
	while (*last != NULL)
		last = &(*last)->next;
	*last = w;
	return 0;
}

int peer_post(struct ep *ep, fi_addr_t to, struct xdpfab_entry *e)
{
	struct domain *d = ep->dom;
	const size_t slot = av_slot(ep->av, to);
	struct xdpfab_entry *x;
	struct peer *p;
	int error;

	if (av_addr(ep->av, to) == NULL)
		return -FI_EINVAL;
	if (slot >= ep->peer_count) {
		error = grow(ep);
		if (error != 0)
			return error;
	}
	p = &ep->peers[slot];
	if (p->number != 0 && p->first == NULL) { /* nearly always */
		x = guest_entry(&d->g);
		if (x == NULL)
			return -FI_EAGAIN;
		e->peer = p->number;
		*x = *e;
		op_posted(&d->ops[e->cookie]);
		guest_show(&d->g);
		return 0;
	}
	error = wait_in(p, e);
	if (error == 0 && p->number == 0 && !p->asked) {
		error = ask(ep, to, p);
		if (error != 0) { /* it is the only one that waits */
			free(p->first);
			p->first = NULL;
		}
	}
	return error;
}

void peers_retry(struct ep *ep)
{
	for (size_t i = 0; i < ep->peer_count; i++)
		if (ep->peers[i].number != 0 && ep->peers[i].first != NULL)
			post_waiting(ep->dom, &ep->peers[i], 0);
}

static void forget(struct ep *ep, size_t at)
{
	struct peer *p;

	if (at >= ep->peer_count)
		return;
	p = &ep->peers[at];
	post_waiting(ep->dom, p, FI_ECANCELED);
	for (struct asked *a = ep->asked; a != NULL; a = a->next)
		a->forgotten |= a->at == at;
	if (p->number != 0)
		guest_note(&ep->dom->g, &(struct xdpfab_entry){.verb = XDPFAB_FORGET, .peer = p->number});
	*p = (struct peer){.number = 0};
}

void peer_forget(struct ep *ep, fi_addr_t at)
{
	const size_t first = av_slot(ep->av, at);

	for (size_t i = 0; i < (size_t)1 << ep->av->rx_bits; i++)
		forget(ep, first + i);
}

void peers_fail(struct ep *ep, int error)
{
	for (size_t i = 0; i < ep->peer_count; i++)
		post_waiting(ep->dom, &ep->peers[i], error);
}

void peers_free(struct ep *ep)
{
	peers_fail(ep, FI_ECANCELED);
	for (struct asked *a = ep->asked; a != NULL; a = a->next)
		a->ep = NULL;
	free(ep->peers);
	ep->peers = NULL;
	ep->peer_count = 0;
}
