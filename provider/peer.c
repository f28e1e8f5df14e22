/* SPDX-License-Identifier: Apache-2.0
 *
 * The peers of an endpoint: the daemon gives each a number when it is first posted to. That
 * may take as long as the next hop takes to answer, so what is posted meanwhile waits here.
 * While the daemon is asked for peers on a node, further ones on that node are gathered, and
 * asked for together: a list takes it little longer than one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "op.h"

enum { MOST_PEERS = 128 }; /* of a list, as the daemon has it */

/* A peer whose number is asked for. */
struct sought {
	struct addr addr;
	size_t at; /* slot */
	bool forgotten; /* the address has been removed meanwhile */
};

/* A call for the numbers of peers on one node. */
struct asked {
	struct call call;
	struct asked *next; /* of the endpoint's */
	struct ep *ep;	    /* NULL: closed */
	bool begun;
	size_t count;
	struct sought of[MOST_PEERS];
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

/* The daemon has given a peer its number, or not. */
static void numbered(struct ep *ep, const struct sought *s, uint32_t number, int error)
{
	struct peer *p = &ep->peers[s->at];

	if (s->forgotten) {
		if (error == 0)
			guest_note(&ep->dom->g, &(struct xdpfab_entry){.verb = XDPFAB_FORGET, .peer = number});
		return;
	}
	p->asked = false;
	p->number = error == 0 ? number : 0;
	post_waiting(ep->dom, p, error);
}

/* Takes the numbers out of an answer: one peer has its number, a list has one object each. */
static void take_numbers(struct asked *a, const struct reply *r)
{
	struct json list = r->result, one = {NULL, NULL};
	char text[sizeof r->text];

	if (r->error != 0)
		WARN(EP_CTRL, "peer: %s\n", r->text);
	for (size_t i = 0; i < a->count; i++) {
		struct json number = r->result;
		int error = r->error;

		if (a->count > 1 && error == 0) {
			error = json_next(&list, &one) ? reply_error(one, text, sizeof text) : EPROTO;
			number = json_member(one, "number");
			if (error != 0)
				WARN(EP_CTRL, "peer: %s\n", error == EPROTO ? "the daemon has left it out" : text);
		}
		numbered(a->ep, &a->of[i], (uint32_t)json_number(number, 0), error);
	}
	guest_show(&a->ep->dom->g);
}

static bool same_node(const struct addr *a, struct addr b)
{
	b.endpoint = a->endpoint;
	return addr_equal(a, &b);
}

/* A call of an endpoint for peers on a node; NULL if there is none. Of those that have not
 * begun there is one at most, which begins when another one has been answered, or is full. */
static struct asked *asked_of(struct ep *ep, const struct addr *node, bool begun)
{
	struct asked *a = ep->asked;

	while (a != NULL && (a->begun != begun || !same_node(node, a->of[0].addr)))
		a = a->next;
	return a;
}

static void answered(struct call *call, const struct reply *r);

static void begin(struct asked *a)
{
	struct talk *t = &a->ep->dom->g.talk;
	char text[MOST_PEERS * ADDR_TEXT + 80];
	size_t n;

	n = (size_t)snprintf(text, sizeof text, "{\"origin\":%llu,\"%s", (unsigned long long)a->ep->identity,
			     a->count == 1 ? "addr\":" : "addrs\":[");
	for (size_t i = 0; i < a->count; i++) {
		addr_json(&a->of[i].addr, text + n, sizeof text - n);
		n += strlen(text + n);
		text[n++] = ',';
	}
	snprintf(text + n - 1, sizeof text - n, "%s", a->count == 1 ? "}" : "]}");
	INFO(EP_CTRL, "endpoint %u: peers %s\n", a->ep->number, text);
	a->call.done = answered;
	a->begun = true;
	talk_begin(t, &a->call, a->count == 1 ? "peer" : "peers", text, -1);
}

static void answered(struct call *call, const struct reply *r)
{
	struct asked *a = container_of(call, struct asked, call), *next = NULL;

	if (r->fd >= 0)
		close(r->fd);
	if (a->ep != NULL) {
		unlink_asked(a);
		take_numbers(a, r);
		next = asked_of(a->ep, &a->of[0].addr, false);
	}
	free(a);
	if (next != NULL)
		begin(next);
}

static int ask(struct ep *ep, fi_addr_t to, struct peer *p)
{
	struct addr addr = *av_addr(ep->av, to);
	const struct asked *under_way = ep->dom->g.lists ? asked_of(ep, &addr, true) : NULL;
	struct asked *a = under_way == NULL ? NULL : asked_of(ep, &addr, false);

	addr.endpoint = (uint16_t)(addr.endpoint + av_context(ep->av, to));
	if (a == NULL) {
		a = calloc(1, sizeof *a);
		if (a == NULL)
			return -FI_ENOMEM;
		a->ep = ep;
		a->next = ep->asked;
		ep->asked = a;
	}
	p->asked = true;
	a->of[a->count++] = (struct sought){.addr = addr, .at = av_slot(ep->av, to)};
	if (under_way == NULL || a->count == MOST_PEERS)
		begin(a);
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
		for (size_t i = 0; i < a->count; i++)
			a->of[i].forgotten |= a->of[i].at == at;
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
	while (ep->asked != NULL) {
		struct asked *a = ep->asked;

		ep->asked = a->next;
		a->ep = NULL;
		if (!a->begun)
			free(a);
	}
	free(ep->peers);
	ep->peers = NULL;
	ep->peer_count = 0;
}
