/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
//go:build ignore

/*
 * Executes the requests of resident sessions. The steering program (bpf/steer.c) calls
 * xdpfab_execute for each packet that it would redirect to a socket; user space calls
 * xdpfab_call, by BPF_PROG_TEST_RUN, for everything else that a session needs.
 *
 * Needs Linux 5.18: bpf_loop, global functions with pointers, helpers that copy packets.
 */
#include "headers/answer.h"
#include "headers/call.h"
#include "headers/seal.h"

/* As in steer.c, whose maps the loader puts in place of these. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, FAB_LANES);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NUM_REASONS);
	__type(key, enum reason);
	__type(value, __u64);
} counters SEC(".maps");

/* Frames of packets by verdict, for all sessions together. */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NUM_VERDICTS);
	__type(key, __u32);
	__type(value, __u64);
} tallies SEC(".maps");

static __always_inline void tally(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&tallies, &what);

	if (n)
		*n += 1;
}

static __always_inline void count(enum reason reason)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &reason);

	if (n)
		*n += 1;
}

/* Gives the frame to the socket of its queue and lane, if there is one. */
static __always_inline int up(struct xdp_md *ctx, __u32 lane)
{
	return bpf_redirect_map(&sockets, ctx->rx_queue_index * FAB_LANES + lane, XDP_DROP) == XDP_REDIRECT;
}

/* Whether the answer to a frame may have been lost before, so that it should leave by a
 * socket: a driver may drop what this program sends, for good, as veth does if its other
 * end has no program. A probe does not say so. Every other such frame is this program's
 * as long as user space does not look at them: it may be stopped. */
static __always_inline int wants_socket(struct session *x, const struct scratch *s)
{
	int resent = s->h.type == T_REQUEST && s->h.flags & RETX && judge(x, s) == DUPLICATE;

	if (!resent && s->h.type != T_PROBE)
		return 0;
	x->handed = !x->handed;
	return x->handed;
}

/* The verdict on a frame that user space, if there is any, has to see before anything is
 * done, or DROP if it need not. */
static __always_inline enum verdict concerns_user(struct session *x, const struct scratch *s)
{
	if (x->attended & RELAYS || wants_socket(x, s))
		return RELAYED;
	if (x->attended || (s->h.type == T_REQUEST && diff(s->h.ack, x->expected) < 0 && judge(x, s) == EARLY))
		return EARLY;
	return DROP;
}

/* What becomes of a frame of a session that it names: 1 if the answer is to be sent. */
static __always_inline int serve(struct xdp_md *ctx, struct scratch *s, const struct envelope *v,
				 struct session *x, __u32 place, struct outcome *o)
{
	if (x->id != s->h.session || x->epoch != s->h.epoch) {
		o->verdict = UNKNOWN;
		return 0;
	}
	if (x->life != LIVE || !fits(v, x) || x->claimed) {
		o->verdict = SPENT;
		return 0;
	}
	o->x = x;
	o->verdict = concerns_user(x, s);
	if (o->verdict && up(ctx, s->h.session >> 26))
		return 0;
	take(s, x, place, o);
	if (!o->sends)
		return 0;
	seal_frame(s, x, o->a);
	return reply(ctx, s, v, o);
}

/* Executes the frame, if it is of a resident session. Returns what becomes of the packet, or
 * 0 if the frame is user space's. */
static __always_inline int execute_packet(struct xdp_md *ctx, struct scratch *s, const struct envelope *v)
{
	struct outcome o = { .verdict = UNSOUND };
	struct session *x;
	__u32 place = 0;
	int sent = 0;

	x = session_at(s, v->session, &place);
	if (!x) {
		tally(UNKNOWN);
		return 0;
	}
	s->length = v->length;
	if (s->length < FRAME_MIN || s->length > FRAME_MAX ||
	    !(s->length <= SHORT ? load_short(ctx, s, v) : load_long(ctx, s, v->frame)))
		return 0;
	if (!read_header(s) || s->h.session != v->session || !open_frame(s, x) || !unpadded(s)) {
		tally(UNSOUND);
		return 0;
	}
	if (!acquire(x)) {
		tally(BUSY);
		return XDP_DROP;
	}
	sent = serve(ctx, s, v, x, place, &o);
	unlock(x);
	tally(o.verdict);
	if (sent)
		return XDP_TX;
	switch (o.verdict) {
	case DROP: case STALE: case OUT_OF_WINDOW: case INVALID:
		return XDP_DROP;
	default:
		return 0; /* user space's: if it has run, as a duplicate */
	}
}

SEC("xdp")
int xdpfab_execute(struct xdp_md *ctx)
{
	struct scratch *s;
	struct envelope v = {};
	int action = 0;

	/* The steering program has seen that there is a frame. */
	if (!find_frame(ctx, &v))
		return XDP_ABORTED;
	s = scratch_of(FOR_PACKETS);
	if (s) {
		/* Read back from there, the verifier knows nothing of it, and so follows what
		 * comes next once instead of for each encapsulation. */
		s->envelope = v;
		asm volatile("" ::: "memory");
		action = execute_packet(ctx, s, &s->envelope);
		s->busy = 0;
	}
	if (action) {
		count(REASON_EXECUTED);
		return action;
	}
	if (up(ctx, v.session >> 26)) {
		count(REASON_REDIRECT);
		return XDP_REDIRECT;
	}
	count(REASON_DROP_NO_SOCKET);
	return XDP_DROP;
}

SEC("xdp")
int xdpfab_call(struct xdp_md *ctx)
{
	struct scratch *s = scratch_of(FOR_CALLS);
	int action = XDP_ABORTED;

	if (!s)
		return XDP_ABORTED;
	action = answer_call(ctx, s);
	s->busy = 0;
	return action;
}

char _license[] SEC("license") = "Dual BSD/GPL";
