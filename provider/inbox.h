/* SPDX-License-Identifier: Apache-2.0
 *
 * What peers send to endpoints: the sessions that messages come in, and the receives that
 * they go into.
 */
#ifndef XDPFAB_INBOX_H
#define XDPFAB_INBOX_H

#include "match.h"
#include "xdpfab.h"

/* The receives of an endpoint. */
struct inbox {
	struct ep *ep;
	struct match *q;
};

struct sessions;
struct sessions *sessions_new(void);
struct answers *answers_new(void);
void sessions_free(struct sessions *s);

/* Messages that wait may find room. */
void sessions_room(struct sessions *s);

/* Ends the sessions with an endpoint that is being closed. */
void sessions_leave(struct domain *d, const struct ep *ep);

/* shared.c: an endpoint gets what it shares, has been enabled, and is being closed: it has shared
 * receives, or any sends. The first three return 0 or a negative error. */
int shared_bind(struct ep *ep, struct ep *srx);
int shared_bind_tx(struct ep *ep, struct stx *stx);
int shared_enabled(struct ep *ep);
void shared_leave(struct ep *ep);
void shared_leave_tx(struct ep *ep);

int inbox_open(struct ep *ep);
void inbox_close(struct ep *ep);

/* The daemon has ended: receives end with FI_ENETDOWN. */
void inbox_end_all(struct domain *d);

/* Takes what has arrived, and returns how many records. */
size_t inbox_arrivals(struct domain *d);

/* Messages that wait for room may find it: completions have been read from a queue. */
void inbox_freed(struct domain *d, const struct cq *cq);

/* defer.c: tells of the end of a receive that was queued, or of a message in it. */
struct deferred;
void defer_received(struct deferred *w, const struct match_done *done, bool ok);

struct match_source inbox_source(const struct addr *a);

/* Tells the program of a message that a peek has found, or of none. */
void inbox_tell(struct ep *ep, const struct match_done *done, uint64_t flags, int error);

#endif
