/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One frame of a session, from the header to the answer. This is the only piece of code
 * that executes anything in a resident session, whoever calls it; a program that has
 * begun runs to its end, so a frame that has run is noted and answered, or has not run.
 */
#pragma once

#include "frame.h"

/* What a frame has led to. */
struct outcome {
	struct session *x; /* locked, unless 0 */
	struct answer *a; /* whose data are the body of the frame to be sent, if it has one */
	enum verdict verdict;
	__u32 sends; /* 1: there is a frame to be sent, in out and a, without its seal */
};

/* The session of an id, and its place. It is mostly where this CPU has found it before; a
 * place whose session has ended has no id, or another one. */
static __always_inline struct session *session_at(struct scratch *s, __u32 id, __u32 *place)
{
	__u32 *hint = s->hints + CUT(id * 0x9E3779B1u >> (32 - HINT_BITS), HINTS - 1), *at;
	struct session *x;

	*place = *hint;
	x = bpf_map_lookup_elem(&sessions, place);
	if (x && id && x->id == id)
		return x;
	at = bpf_map_lookup_elem(&places, &id);
	if (!at)
		return 0;
	*place = *hint = *at;
	return bpf_map_lookup_elem(&sessions, place);
}

static __always_inline struct answer *answer_at(__u32 place, __u32 psn)
{
	__u32 at = place * WINDOW + (psn & SLOT);

	return bpf_map_lookup_elem(&answers, &at);
}

/* Runs the request that is next, or that has no order. */
static __always_inline void run(struct scratch *s, struct session *x, struct answer *a,
				struct outcome *o)
{
	s->auth = x->auth;
	s->room = CUT(x->payload, FRAME_MASK);
	if (!execute(s, a)) {
		o->verdict = FOREIGN;
		return;
	}
	if (s->torn) {
		x->claimed = IN_PART;
		o->verdict = TORN;
		return;
	}
	ran(x, s, a);
	put_answer(s, x, s->h.psn, a);
	o->sends = 1;
}

static __always_inline void take_request(struct scratch *s, struct session *x, __u32 place,
					 struct outcome *o)
{
	o->verdict = judge(x, s);
	if (o->verdict != EXECUTE && o->verdict != DUPLICATE) {
		if (o->verdict == EARLY) {
			put_bare(s, x, T_NAK, x->expected);
			o->sends = 1;
		}
		return;
	}
	o->a = answer_at(place, s->h.psn);
	if (!o->a) {
		o->verdict = ABSENT;
		return;
	}
	if (o->verdict == EXECUTE) {
		run(s, x, o->a, o);
		return;
	}
	put_answer(s, x, s->h.psn, o->a);
	o->sends = 1;
}

static __always_inline void take_probe(struct scratch *s, struct session *x, struct outcome *o)
{
	if (diff(s->h.psn, x->probes) > 0) { /* not a replay of a captured one */
		x->probes = s->h.psn;
		x->heard++;
	}
	o->verdict = DROP;
	if (s->h.flags & ECHO) {
		put_bare(s, x, T_ACK, s->h.psn);
		s->out[1] |= ECHO;
	} else {
		put_bare(s, x, T_ACK, x->expected);
	}
	o->sends = 1;
}

/* Takes the frame in s, whose header has been read, of a session that is locked. */
static __always_inline void take(struct scratch *s, struct session *x, __u32 place, struct outcome *o)
{
	if (!free_answers(x, s->h.ack)) {
		o->verdict = INVALID;
		return;
	}
	switch (s->h.type) {
	case T_REQUEST: take_request(s, x, place, o); break;
	case T_PROBE: take_probe(s, x, o); break;
	default: o->verdict = DROP;
	}
}
