/* SPDX-License-Identifier: Apache-2.0
 *
 * The sessions of peers with endpoints: messages come in them one after another.
 */
#ifndef XDPFAB_SESSION_H
#define XDPFAB_SESSION_H

#include "inbox.h"

struct session {
	struct session *chain;
	uint64_t number;
	struct ep *ep;
	struct match_inflow *in;
	struct session *waits; /* the next one whose message waits for room */
	bool waiting, admitted; /* its message is announced; it is admitted, and has not begun to come */
	struct match_message message; /* that is announced */
	uint32_t at, len; /* of the arena: what the elements hold that it is an atomic on */
};

struct sessions {
	struct session **chains; /* by number */
	size_t chain_count, count;
	struct session *waiting; /* the oldest first */
	bool room; /* messages that wait may find room */
	uint8_t *scratch;
	size_t scratch_len;
};

/* Returns the session of a record, NULL if there is no endpoint for it. */
struct session *session_of(struct domain *d, const struct xdpfab_arrival *r);
void session_end(struct domain *d, struct session *s);

/* Its message waits for room no longer. */
void session_unwait(struct sessions *all, struct session *s);

/* Gives back the part of the arena that has the values of an atomic. */
void session_free_values(struct domain *d, struct session *s);

/* serve.c: executes the operations of a record; returns false, and has done nothing, if
 * there is no room for the answer. */
bool serve_operations(struct domain *d, const struct xdpfab_arrival *r, const uint8_t *bytes);

/* The address of the sender of a record. */
struct addr session_sender(const struct xdpfab_arrival *r);

#endif
