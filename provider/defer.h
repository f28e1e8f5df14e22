/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that waits for a counter: triggered operations, and what is queued in a domain
 * (fi_trigger(3)).
 */
#ifndef XDPFAB_DEFER_H
#define XDPFAB_DEFER_H

#include <rdma/fi_trigger.h>

#include "call.h"

/* When work starts, and by which name it is cancelled. */
struct trigger {
	struct cntr *at;
	uint64_t threshold;
	const void *name; /* of queued work its struct, of a triggered operation its context */
	bool queued;
};

struct change {
	struct cntr *cntr;
	uint64_t value;
	bool sets; /* and does not add */
};

/* They take work in, and start it if it is due. They return 0, or a negative error when
 * nothing is taken in. The lock is held. What is injected is copied, other buffers are not
 * looked at before the work starts. */
int defer_op(const struct work *w, const struct trigger *t);
int defer_receive(struct ep *ep, const struct wanted *r, struct cntr *done, const struct trigger *t);
int defer_change(struct domain *d, const struct change *c, const struct trigger *t);

/* Which work is meant: all of it, but for what these say if they are not NULL. */
struct meant {
	const struct ep *ep;
	const struct cntr *at;
	const void *name;
	bool queued; /* with the name */
};

/* Ends the work that has not started, with an error, and returns how much that is. */
size_t defer_end(struct domain *d, const struct meant *m, int error);

/* queue.c: the trigger of an operation with FI_TRIGGER. Returns 0 or a negative error. */
int trigger_of(const struct ep *ep, const void *context, struct trigger *t);

/* queue.c: fi_control of a domain. */
int queue_control(struct fid *fid, int command, void *arg);

#endif
