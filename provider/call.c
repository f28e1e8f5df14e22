/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "defer.h"
#include "session.h"

int send_work(struct work *w, struct ep *name, const struct iovec *iov, size_t count, fi_addr_t to,
	      const uint64_t *tag, uint64_t data, uint64_t flags, void *context)
{
	int error = work_init(w, name, to, flags, context);

	if (error == 0)
		error = work_from(w, iov, count, flags);
	if (error != 0)
		return error;
	w->counts = CNTR_SEND;
	w->completion = FI_SEND | (tag == NULL ? FI_MSG : FI_TAGGED);
	w->e.verb = tag == NULL ? XDPFAB_SEND : XDPFAB_TAGGED;
	w->e.count = (uint32_t)w->operand_len;
	if (tag != NULL)
		w->e.key = *tag;
	if ((flags & FI_REMOTE_CQ_DATA) != 0) {
		w->e.flags |= XDPFAB_DATA;
		w->e.data = data;
	}
	if ((flags & FI_MATCH_COMPLETE) != 0)
		w->e.flags |= XDPFAB_MATCH;
	return 0;
}

ssize_t call_send(struct ep *name, const struct iovec *iov, size_t count, fi_addr_t to, const uint64_t *tag,
		  uint64_t data, uint64_t flags, void *context)
{
	struct work w;
	const int error = send_work(&w, name, iov, count, to, tag, data, flags, context);

	return error != 0 ? error : op_post(&w);
}

/* Which messages a receive takes. Of one sender alone if the endpoint can tell. */
static int pattern_of(const struct ep *ep, const struct wanted *r, struct match_pattern *p)
{
	const struct addr *from;

	*p = (struct match_pattern){.tag = r->tag, .ignore = r->ignore, .tagged = r->tagged, .any_source = true};
	if (r->from == FI_ADDR_UNSPEC || (ep->caps & FI_DIRECTED_RECV) == 0)
		return 0;
	if (ep->av == NULL)
		return -FI_ENOAV;
	from = av_addr(ep->av, r->from);
	if (from == NULL)
		return -FI_EINVAL;
	p->from = inbox_source(from);
	p->any_source = false;
	return 0;
}

/* Looks for a message that waits. */
static ssize_t peek(struct ep *ep, const struct wanted *r, const struct match_pattern *p)
{
	const enum match_found how = (r->flags & FI_CLAIM) != 0	    ? MATCH_CLAIM
				     : (r->flags & FI_DISCARD) != 0 ? MATCH_DISCARD
								    : MATCH_LOOK;
	struct match_done done = {.context = r->context, .tag = r->tag};
	bool found;

	progress(ep->dom);
	found = match_peek(ep->inbox->q, p, how, r->context, &done);
	done.received = done.length;
	inbox_tell(ep, &done, FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG), found ? 0 : FI_ENOMSG);
	return 0;
}

static int error_of_result(enum match_result result)
{
	switch (result) {
	case MATCH_OK:
		return 0;
	case MATCH_FULL:
		return -FI_EAGAIN;
	case MATCH_CLOSED:
		return -FI_EOPBADSTATE;
	case MATCH_BAD:
		return -FI_EINVAL;
	case MATCH_UNCLAIMED:
		return -FI_ENOMSG;
	}
	return -FI_EOTHER;
}

/* Drops a message that was claimed. */
static ssize_t discard(struct ep *ep, const struct wanted *r)
{
	struct match_done done;

	if (!match_discard(ep->inbox->q, r->context, &done))
		return -FI_ENOMSG;
	if ((r->flags & FI_COMPLETION) != 0)
		inbox_tell(ep, &done, FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG), 0);
	return 0;
}

int call_receive(struct ep *ep, const struct wanted *r, void *note)
{
	struct match_receive m = {.context = r->context, .note = note, .buffers = r->iov, .count = r->count,
				  .multi = (r->flags & FI_MULTI_RECV) != 0, .min_free = ep->min_multi_recv,
				  .claim = (r->flags & FI_CLAIM) != 0, .silent = (r->flags & FI_COMPLETION) == 0};
	const struct iovec none = {NULL, 0};
	const int error = pattern_of(ep, r, &m.pattern);

	if (error != 0)
		return error;
	if (m.count == 0) {
		m.buffers = &none;
		m.count = 1;
	}
	return error_of_result(match_post(ep->inbox->q, &m));
}

static int trigger(struct ep *ep, const struct wanted *r)
{
	struct trigger t;
	const int error = (r->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0 ? -FI_EBADFLAGS
									      : trigger_of(ep, r->context, &t);

	return error != 0 ? error : defer_receive(ep, r, NULL, &t);
}

/* Whether receives can be posted: to the context, where endpoints share one. */
static int receives(const struct ep *ep)
{
	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		return 0;
	if (!ep->enabled || ep->srx != NULL)
		return -FI_EOPBADSTATE;
	return ep->rxcq == NULL && ep->cntr[CNTR_RECV] == NULL ? -FI_ENOCQ : 0;
}

static ssize_t post(struct ep *ep, const struct wanted *r)
{
	struct match_pattern p;
	int error;

	if (ep->dom->dead)
		return -FI_ENETDOWN;
	error = receives(ep);
	if (error != 0)
		return error;
	if ((r->flags & FI_TRIGGER) != 0)
		return trigger(ep, r);
	if ((r->flags & FI_PEEK) != 0) {
		error = pattern_of(ep, r, &p);
		return error != 0 ? error : peek(ep, r, &p);
	}
	if ((r->flags & (FI_CLAIM | FI_DISCARD)) == (FI_CLAIM | FI_DISCARD))
		return discard(ep, r);
	error = call_receive(ep, r, NULL);
	if (error == -FI_EAGAIN && progress(ep->dom) > 0)
		error = call_receive(ep, r, NULL);
	if (ep->dom->in->room) /* whoever makes progress may be asleep */
		progress(ep->dom);
	return error;
}

ssize_t call_recv(struct ep *name, const struct wanted *r)
{
	const uint64_t known = FI_COMPLETION | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MORE |
			       FI_TRIGGER;
	struct ep *ep = name->base;
	ssize_t error;

	if ((r->flags & ~known) != 0)
		return -FI_EBADFLAGS;
	if (r->count > MOST_IOV)
		return -FI_EINVAL;
	error = enter(ep->dom);
	if (error != 0)
		return error;
	error = post(ep, r);
	defer_start(ep->dom);
	unlock(ep->dom);
	return error;
}
