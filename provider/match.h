/* SPDX-License-Identifier: Apache-2.0
 *
 * Which message goes into which buffer: the posted receives and the unexpected messages
 * of one receive context (fi_msg(3), fi_tagged(3)). The rules are those of Go's package
 * matching:
 *
 * A receive that is posted takes the oldest unexpected message that it matches; if there
 * is none it waits, in posting order. A message that begins takes the oldest posted
 * receive that it matches; if there is none it is held, in the order of arrival. Tagged
 * and untagged messages match separately. A message comes in pieces, from one session: an
 * inflow. Messages that are refused wait at their sessions until `room` is called.
 *
 * Nothing is allocated after match_init. There is no lock: the caller has one.
 */
#ifndef PROVIDER_MATCH_H
#define PROVIDER_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	MATCH_INLINE = 64,   /* bytes of a message that are held without memory of the budget */
	MATCH_CHUNK = 2048,  /* bytes of a piece of that memory */
	MATCH_BUFFERS = 8,   /* most buffers of a receive */
};

/* A sender. The caller fills in network so that two are equal if they are one node. */
struct match_source {
	uint64_t network[3];
	uint16_t endpoint;
};

/* Which messages a receive takes: the untagged ones, or those whose tag is tag in all
 * bits that are not in ignore; and of all senders, or of one. */
struct match_pattern {
	uint64_t tag, ignore;
	bool tagged, any_source;
	struct match_source from;
};

struct match_receive {
	struct match_pattern pattern;
	void *context; /* comes back, and is what match_cancel looks for */
	void *note;    /* comes back as well */
	const struct iovec *buffers; /* filled one after the other; the list is the caller's */
	size_t count;                /* of buffers, at most MATCH_BUFFERS */
	/* multi: the single buffer takes messages one behind another as long as at least
	 * min_free bytes are free, at least one (FI_MULTI_RECV). The last completion is
	 * `released`. */
	bool multi;
	size_t min_free;
	bool reserved; /* match_reserve has taken what the receive needs */
	bool claim;    /* it takes the oldest message that is claimed for context (FI_CLAIM) */
	bool silent;   /* comes back: a success needs no completion */
};

/* A message that begins. */
struct match_message {
	uint64_t length, tag, data;
	bool tagged, has_data;
	bool must_match; /* it is not held */
	uint16_t source; /* endpoint number of the sender */
	/* of an atomic on the receive; form is the verb of ring.h, 0 for other messages */
	uint8_t form, op, datatype;
	uint64_t offset; /* of the first element, in bytes */
};

enum match_reason {
	MATCH_RECEIVED,
	MATCH_TRUNCATED,   /* longer than the buffer; or elements of an atomic lie behind it */
	MATCH_CANCELLED,   /* with no message */
	MATCH_LOST,        /* the session of a claimed message ended before all of it was here */
	MATCH_SPENT,       /* with no message, a multi-receive buffer is released */
	MATCH_MISPLACED,   /* elements of an atomic lie in several buffers, or are misaligned */
	MATCH_UNSUPPORTED, /* there is no such atomic */
};

/* The completion of a receive, or what match_peek found. */
struct match_done {
	void *context, *note;
	void *to; /* what the message was sent to */
	enum match_reason reason;
	uint64_t received; /* bytes that were put into the buffer */
	uint64_t length, tag, data;
	bool tagged, atomic, has_data, released, silent;
	struct match_source from;
	void *buffer;    /* the message in a multi-receive buffer, the elements of an atomic, or NULL */
	uint64_t offset; /* where they begin in the buffer */
};

struct match_config {
	uint32_t receives;   /* most that are posted or being filled */
	uint32_t unexpected; /* most messages that are held */
	uint64_t memory;     /* bytes that these may have, in whole chunks */
	/* The completion queue: take takes a place, and returns false if there is none;
	 * put_back returns one; deliver fills one. room is called when messages that were
	 * refused may find room now; it may be NULL. None of them may call the queue. */
	void *sink;
	bool (*take)(void *sink);
	void (*put_back)(void *sink);
	void (*deliver)(void *sink, const struct match_done *done);
	void (*room)(void *sink);
};

/* Room for messages that are held. */
struct match_room {
	uint32_t messages, bytes;
};

enum match_result {
	MATCH_OK,
	MATCH_FULL,      /* all receives are in use, or the completion queue is full: FI_EAGAIN */
	MATCH_CLOSED,    /* match_close came first */
	MATCH_BAD,       /* too many buffers, or no multi-receive: one buffer, no claim, min_free */
	MATCH_UNCLAIMED, /* no message is claimed for the context */
};

enum match_found {
	MATCH_LOOK,    /* FI_PEEK */
	MATCH_CLAIM,   /* FI_PEEK | FI_CLAIM: it is kept for a claim with the same context */
	MATCH_DISCARD, /* FI_PEEK | FI_DISCARD */
};

struct match;
struct match_inflow;

/* match_bytes returns how much memory a queue needs, match_init makes one of it. Pages of
 * the budget are touched when they are needed first. inflow_bytes is the size of an
 * inflow. */
size_t match_bytes(const struct match_config *config);
struct match *match_init(const struct match_config *config, void *memory);
size_t match_inflow_bytes(void);

/* match_post posts a receive. If it is not MATCH_OK, nothing has changed. */
enum match_result match_post(struct match *q, const struct match_receive *r);

/* match_reserve takes what a receive needs, but for a claim. One of these follows:
 * match_post with `reserved`, match_cancel_reserved, match_unreserve. */
enum match_result match_reserve(struct match *q, const struct match_receive *r);
void match_cancel_reserved(struct match *q, const struct match_receive *r);
void match_unreserve(struct match *q);

/* match_cancel cancels the oldest receive with the context into which no message is
 * going, and reports whether there is one. */
bool match_cancel(struct match *q, const void *context);

/* match_peek tells of the oldest unexpected message that matches; it returns false if
 * there is none. match_discard drops the oldest message that is claimed for the
 * context. */
bool match_peek(struct match *q, const struct match_pattern *p, enum match_found found, void *context,
                struct match_done *done);
bool match_discard(struct match *q, void *context, struct match_done *done);

/* match_freed says that the completion queue has places again. */
void match_freed(struct match *q);

/* match_close cancels every receive and drops every message. Nothing is posted or
 * admitted afterwards. */
void match_close(struct match *q);

/* match_open begins the messages of a session: from is the sender, to comes back in
 * match_done. match_end says that the session has ended; it may be called twice. */
struct match_inflow *match_open(struct match *q, void *memory, const struct match_source *from, void *to);
void match_end(struct match_inflow *in);

/* match_admit finds the place for a message that begins; match_put then takes its pieces,
 * at least one. It returns false if there is no room; the message is admitted again when
 * `room` has been called. match_lacks returns how many bytes the message in progress
 * lacks. */
bool match_admit(struct match_inflow *in, const struct match_message *m);
void match_put(struct match_inflow *in, const void *piece, size_t n);
uint64_t match_lacks(const struct match_inflow *in);

/* match_combine takes the only piece of an atomic on the receive, n bytes of operands,
 * and returns how it went, MATCH_RECEIVED if it is held. match_probe tells before how it
 * will go, and copies what the elements hold to values, if that is not NULL; it returns
 * false if the message is not in a receive. */
enum match_reason match_combine(struct match_inflow *in, const void *operand, const void *compare, size_t n,
                                void *result);
bool match_probe(const struct match_inflow *in, enum match_reason *reason, void *values);

/* match_drop drops the message in progress, if there is one: its sender has let go of
 * it. */
void match_drop(struct match_inflow *in);

/* match_lease gives room away, all that there is, so that messages can come without being
 * announced. If all is false it does so only if that is at least half of what the queue
 * has. match_reclaim takes back what is not used. match_admit_leased is match_admit for a
 * message that comes for such room; one for which there is none is dropped as it
 * comes. */
struct match_room match_lease(struct match *q, bool all);
void match_reclaim(struct match *q, struct match_room room);
void match_admit_leased(struct match_inflow *in, const struct match_message *m);

/* match_forget says that what messages were sent to is no more: their `to` is NULL. */
void match_forget(struct match *q, const void *to);

struct match_usage {
	uint32_t posted, filling, held, claimed, places, inflows;
	uint64_t memory; /* bytes of the budget that messages have */
	struct match_room leased;
};

struct match_usage match_usage(const struct match *q);

#endif
