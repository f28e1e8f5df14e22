/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls of user space. A call is a packet that begins with struct call; a frame, or what
 * the command needs, follows. The same struct comes back, and perhaps the frame to be sent,
 * which user space seals.
 * A process that is killed cannot stop within a call: so no session stays locked, and no
 * frame half done.
 */
#pragma once

#include "receive.h"

enum command {
	CALL_RECEIVE, /* take a frame, which is open */
	CALL_BEGIN, /* a session: struct session follows, with its place in arg */
	CALL_FREEZE, /* run nothing more; answers up to arg have arrived */
	CALL_END, /* likewise, and life is ENDED */
	CALL_RELEASE, /* forget the session */
	CALL_ATTEND, /* user space wants all frames, for the reasons in arg: enum attended */
	CALL_COMMIT, /* the claimed frame has run: its answer follows, as struct answer */
	CALL_UNCLAIM, /* the claimed frame has not run */
	CALL_ANSWER, /* the frame that answers request arg */
	CALL_BARE, /* a frame of type arg without payload */
	CALL_THAW, /* undo CALL_FREEZE */
};

struct call {
	__u32 command;
	__u32 session;
	__u32 arg;
	__u32 verdict;
	__u32 length; /* of what follows, bytes */
	__u32 pad;
};

static __always_inline void call_receive(struct xdp_md *ctx, struct scratch *s, struct call *c,
					 struct session *x, __u32 place, struct outcome *o)
{
	x->handed = 0;
	s->length = c->length;
	o->verdict = UNSOUND;
	if (s->length < FRAME_MIN || s->length > FRAME_MAX || !load_long(ctx, s, sizeof(*c)) || !read_header(s))
		return;
	if (x->claimed == IN_PART) {
		o->verdict = TORN;
		return;
	}
	take(s, x, place, o);
	if (o->verdict == FOREIGN)
		x->claimed = CLAIMED;
}

/* The claimed frame has run: s holds a copy of its answer. */
static __always_inline void call_commit(struct xdp_md *ctx, struct scratch *s, struct call *c,
					struct session *x, __u32 place, struct outcome *o)
{
	struct answer *a;
	__u32 psn, n = CUT(c->length - 1, FRAME_MASK) + 1;

	o->verdict = INVALID;
	if (x->claimed != CLAIMED || c->length < 8 || c->length > 8 + PAYLOAD_MAX ||
	    bpf_xdp_load_bytes(ctx, sizeof(*c), s->in, n))
		return;
	psn = in32(s, 4);
	a = answer_at(place, psn);
	if (!a || bpf_xdp_load_bytes(ctx, sizeof(*c), a, n))
		return;
	s->h.psn = psn;
	s->h.ops = a->ops;
	ran(x, s, a);
	x->claimed = 0;
	o->verdict = EXECUTE;
}

static __always_inline void call_answer(struct scratch *s, struct call *c, struct session *x,
					__u32 place, struct outcome *o)
{
	__s32 d = diff(c->arg, x->expected);

	o->verdict = ABSENT;
	if (diff(c->arg, x->freed) <= 0 || (d >= 0 && (d >= WINDOW || !(x->ahead & bit(c->arg)))))
		return;
	o->a = answer_at(place, c->arg);
	if (!o->a)
		return;
	put_answer(s, x, c->arg, o->a);
	o->verdict = DUPLICATE;
	o->sends = 1;
}

/* Does what the command asks of a session that is locked. */
static __always_inline void obey(struct xdp_md *ctx, struct scratch *s, struct call *c,
				 struct session *x, __u32 place, struct outcome *o)
{
	o->verdict = DROP;
	switch (c->command) {
	case CALL_RECEIVE: call_receive(ctx, s, c, x, place, o); break;
	case CALL_COMMIT: call_commit(ctx, s, c, x, place, o); break;
	case CALL_ANSWER: call_answer(s, c, x, place, o); break;
	case CALL_FREEZE:
		free_answers(x, c->arg);
		if (x->life == LIVE)
			x->life = FROZEN;
		break;
	case CALL_END: x->life = ENDED; break;
	case CALL_ATTEND: x->attended = c->arg; break;
	case CALL_UNCLAIM:
		if (x->claimed == CLAIMED)
			x->claimed = 0;
		break;
	case CALL_THAW:
		if (x->life == FROZEN)
			x->life = LIVE;
		break;
	case CALL_RELEASE:
		x->id = 0;
		x->life = FREE;
		bpf_map_delete_elem(&places, &c->session);
		break;
	case CALL_BARE:
		put_bare(s, x, c->arg, x->expected);
		o->sends = 1;
		break;
	default: o->verdict = UNSOUND;
	}
}

/* Makes a session at the place arg, which nobody has. */
static __always_inline enum verdict begin_session(struct xdp_md *ctx, struct call *c)
{
	struct session as = {}, *x = bpf_map_lookup_elem(&sessions, &c->arg);
	enum verdict v = INVALID;

	if (!x || bpf_xdp_load_bytes(ctx, sizeof(*c), &as, sizeof(as)) || as.id != c->session)
		return INVALID;
	if (!acquire(x))
		return BUSY;
	as.lock = 1;
	if (x->life == FREE) {
		*x = as;
		v = bpf_map_update_elem(&places, &as.id, &c->arg, 0) ? INVALID : DROP;
		if (v != DROP) {
			x->id = 0;
			x->life = FREE;
		}
	}
	unlock(x);
	return v;
}

/* Locks the session that the call names, as o->x, and obeys. */
static __always_inline void obey_at(struct xdp_md *ctx, struct scratch *s, struct call *c, struct outcome *o)
{
	__u32 place = 0;
	struct session *x = session_at(s, c->session, &place);

	o->verdict = UNKNOWN;
	if (!x)
		return;
	if (!acquire(x)) {
		o->verdict = BUSY;
		return;
	}
	o->x = x;
	if (x->id == c->session)
		obey(ctx, s, c, x, place, o);
}

/* Writes what comes back. */
static __always_inline int put_result(struct xdp_md *ctx, struct scratch *s, struct call *c,
				      struct outcome *o)
{
	__u32 body = s->body;

	c->verdict = o->verdict;
	c->length = o->sends ? HEADER + body : 0;
	if (bpf_xdp_adjust_tail(ctx, (int)(sizeof(*c) + c->length) - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, c, sizeof(*c)))
		return XDP_ABORTED;
	if (!o->sends)
		return XDP_PASS;
	if (bpf_xdp_store_bytes(ctx, sizeof(*c), s->out, HEADER))
		return XDP_ABORTED;
	if (o->a && body &&
	    bpf_xdp_store_bytes(ctx, sizeof(*c) + HEADER, o->a->data, CUT(body - 1, FRAME_MASK) + 1))
		return XDP_ABORTED;
	return XDP_PASS;
}

static __always_inline int answer_call(struct xdp_md *ctx, struct scratch *s)
{
	struct outcome o = {};
	struct call c = {};
	int action;

	if (bpf_xdp_load_bytes(ctx, 0, &c, sizeof(c)))
		return XDP_ABORTED;
	if (c.command == CALL_BEGIN)
		o.verdict = begin_session(ctx, &c);
	else
		obey_at(ctx, s, &c, &o);
	action = put_result(ctx, s, &c, &o);
	if (o.x)
		unlock(o.x);
	return action;
}
