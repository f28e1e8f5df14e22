/* SPDX-License-Identifier: Apache-2.0 */
#include "inbox.h"

#include <stdlib.h>

enum { UNEXPECTED = 1024 }; /* messages of an endpoint that wait for a receive */

/* A source as match.h has it is the address: the IP or MAC in two words, the family in one. */
struct match_source inbox_source(const struct addr *a)
{
	struct match_source s = {.endpoint = a->endpoint};

	memcpy(s.network, a->ip, sizeof a->ip);
	if (a->family == AF_UNSPEC)
		memcpy(s.network, a->mac, sizeof a->mac);
	s.network[2] = a->family;
	return s;
}

static struct addr addr_of(const struct match_source *s)
{
	struct addr a = {.family = (sa_family_t)s->network[2], .endpoint = s->endpoint};

	if (a.family == AF_UNSPEC)
		memcpy(a.mac, s->network, sizeof a.mac);
	else
		memcpy(a.ip, s->network, sizeof a.ip);
	return a;
}

static int error_of_reason(const struct match_done *done)
{
	switch (done->reason) {
	case MATCH_RECEIVED:
	case MATCH_SPENT:
		return 0;
	case MATCH_TRUNCATED:
		return FI_ETRUNC;
	case MATCH_CANCELLED:
		return FI_ECANCELED;
	case MATCH_LOST:
		return FI_ECONNRESET;
	case MATCH_MISPLACED:
		return FI_EINVAL;
	case MATCH_UNSUPPORTED:
		return FI_EOPNOTSUPP;
	}
	return FI_EOTHER;
}

void inbox_tell(struct ep *ep, const struct match_done *done, uint64_t flags, int error)
{
	const struct addr from = addr_of(&done->from);
	struct cqe c = {.e = {.op_context = done->context, .flags = flags, .len = done->received, .buf = done->buffer,
			      .data = done->data, .tag = done->tag},
			.source = FI_ADDR_NOTAVAIL, .err = error};

	if (done->has_data)
		c.e.flags |= FI_REMOTE_CQ_DATA;
	if (done->released)
		c.e.flags |= FI_MULTI_RECV;
	if ((ep->caps & FI_SOURCE) != 0 && ep->av != NULL)
		c.source = av_find(ep->av, &from);
	if (error != 0)
		c.olen = done->length - done->received;
	if (ep->rxcq != NULL)
		cq_add(ep->rxcq, &c);
}

static bool take(void *sink)
{
	const struct inbox *in = sink;

	if (in->ep->rxcq == NULL || !cq_full(in->ep->rxcq))
		return true;
	in->ep->rxcq->starved = true;
	return false;
}

/* The queue grows by as many completions as there are receives, so a place is only looked at
 * before it is taken: see cq_full. */
static void put_back(void *sink)
{
	(void)sink;
}

/* Who hears of it: of a shared queue the endpoint that the message was sent to. */
static struct ep *owner(const struct inbox *in, const struct match_done *done)
{
	struct ep *to = done->to;

	return to == NULL || to->closing ? in->ep : to;
}

static void deliver(void *sink, const struct match_done *done)
{
	const struct inbox *in = sink;
	struct ep *ep = owner(in, done);
	struct cntr *cntr = ep->cntr[CNTR_RECV];
	uint64_t flags = FI_RECV | (done->tagged ? FI_TAGGED : FI_MSG);
	int error = error_of_reason(done);

	if (done->note != NULL) /* it counts for itself */
		defer_received(done->note, done, error == 0);
	if (ep->closing)
		return;
	if (error == FI_ECANCELED && ep->dom->dead)
		error = FI_ENETDOWN;
	if (done->note == NULL && cntr != NULL && done->reason != MATCH_SPENT)
		cntr_add(cntr, error == 0, error != 0);
	if (done->reason == MATCH_SPENT)
		flags = FI_RECV | FI_MSG | FI_MULTI_RECV;
	if (error != 0 || !done->silent || done->released)
		inbox_tell(ep, done, flags, error);
}

static void room(void *sink)
{
	const struct inbox *in = sink;

	sessions_room(in->ep->dom->in);
}

int inbox_open(struct ep *ep)
{
	struct inbox *in = calloc(1, sizeof *in);
	const struct match_config c = {.receives = (uint32_t)ep->rx_size, .unexpected = UNEXPECTED,
				       .memory = ep->buffered, .sink = in, .take = take, .put_back = put_back,
				       .deliver = deliver, .room = room};
	void *memory = in == NULL ? NULL : malloc(match_bytes(&c));

	if (memory == NULL) {
		free(in);
		return -FI_ENOMEM;
	}
	*in = (struct inbox){.ep = ep, .q = match_init(&c, memory)};
	ep->inbox = in;
	return 0;
}

void inbox_close(struct ep *ep)
{
	if (ep->srx != NULL) {
		sessions_leave(ep->dom, ep);
		shared_leave(ep);
		return;
	}
	match_close(ep->inbox->q);
	sessions_leave(ep->dom, ep);
	free(ep->inbox->q);
	free(ep->inbox);
	ep->inbox = NULL;
}

void inbox_end_all(struct domain *d)
{
	for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
		match_close(ep->inbox->q);
}

void inbox_freed(struct domain *d, const struct cq *cq)
{
	for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
		if (ep->rxcq == cq)
			match_freed(ep->inbox->q);
}
