/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of match.h.
 */
#ifndef PROVIDER_MATCH_STATE_H
#define PROVIDER_MATCH_STATE_H

#include "kernels.h"
#include "match.h"

/* A list whose links are the beginnings of its members. */
struct link {
	struct list *in;
	struct link *prev, *next;
};

struct list {
	struct link *first, *last;
	uint32_t n;
};

void list_insert(struct list *l, struct link *e, struct link *before);
void list_leave(struct link *e);
void *list_pop(struct list *l);

static inline void list_push(struct list *l, struct link *e)
{
	list_insert(l, e, NULL);
}

/* A receive that was posted. If it waits for messages it is in the list posted and has a
 * place in the completion queue. Each message that goes into it has one too: that of the
 * receive itself, unless the receive is a multi-receive that keeps waiting. */
struct receive {
	struct link at;
	struct match_pattern pattern;
	uint64_t sequence; /* in posting order */
	void *context, *note;
	struct iovec buffers[MATCH_BUFFERS];
	uint32_t count, filling; /* buffers; messages going in */
	uint64_t size;           /* bytes of all buffers */
	uint64_t min_free, used, floor; /* used: by messages; floor: by complete ones */
	bool multi, claim, silent;
	bool behind; /* waits for a place; messages that are held match it */
};

struct chunk {
	struct chunk *next;
	uint8_t bytes[MATCH_CHUNK];
};

/* What an atomic does with the buffer of its receive. */
struct operation {
	bool is;
	kernel_fn *kernel, *read; /* kernel is NULL if there is no such operation */
	uint32_t size, align;     /* of an element */
	uint64_t offset;
	uint8_t *target; /* the elements; NULL unless a receive takes the message, and it fits */
	enum match_reason misfit;
};

/* A message that was admitted. It is held, claimed, goes into a receive, or is discarded
 * while the rest of it is still coming. It is in the pool while it is held or claimed,
 * and in its inflow otherwise. */
struct message {
	struct link at;
	struct match_inflow *in; /* that it is coming from; NULL if all of it is here */
	struct match_source from;
	void *to, *context; /* context: for which it is claimed */
	uint64_t length, tag, data, got;
	struct receive *into;
	uint64_t offset, size; /* where in the buffers of into; bytes of it that fit there */
	bool tagged, has_data, discarded;
	struct operation op;
	uint32_t reserved; /* chunks of the budget */
	struct chunk *chunks, *tail;
};

struct match_inflow {
	struct link at;
	struct match *q;
	struct match_source from;
	void *to;
	struct message *current; /* in progress */
	struct message own;
};

struct match {
	struct match_config config;
	bool closed;
	bool waiting; /* a message was refused, and room was not called since */
	bool cramped; /* likewise, for want of room to hold it */
	bool starved; /* a multi-receive found no place */
	uint64_t sequence;
	struct list posted[2], held[2]; /* untagged, tagged */
	struct list claimed, receives, messages, inflows; /* receives, messages: not in use */
	uint32_t behind, places, reserved;
	struct message *pool;
	uint8_t *inlines; /* MATCH_INLINE bytes for each of the pool */
	struct chunk *chunks, *spare;
	uint64_t free, made; /* chunks: not reserved; touched */
	struct match_room leased;
	struct match_done done;
};

static inline uint32_t chunks_for(uint64_t bytes)
{
	return (uint32_t)(bytes / MATCH_CHUNK + (bytes % MATCH_CHUNK != 0));
}

static inline uint32_t holding(const struct match *q)
{
	return q->held[0].n + q->held[1].n + q->claimed.n;
}

/* waits reports whether a receive is posted and waits for messages. */
static inline bool waits(const struct match *q, const struct receive *n)
{
	return n->at.in == &q->posted[n->pattern.tagged];
}

bool mq_matches(const struct match_pattern *p, const struct message *m);
struct receive *mq_find(const struct match *q, const struct message *m);
bool mq_bind(struct match *q, struct receive *n, struct message *m);
void mq_unbind(struct match *q, struct message *m);
void mq_move(struct match *q, struct message *m);
void mq_complete(struct match *q, struct message *m);
void mq_offer(struct match *q, struct receive *n);
void mq_offer_all(struct match *q);
void mq_catch_up(struct match *q);
void mq_set_behind(struct match *q, struct receive *n, bool behind);
void mq_unlist(struct match *q, struct receive *n);
void mq_conclude(struct match *q, struct receive *n, enum match_reason why);
void mq_make_room(struct match *q);
bool mq_provide(struct match *q);
void mq_return_place(struct match *q);
void mq_deliver(struct match *q);
struct match_done mq_about(const struct message *m, void *context);

struct message *mq_hold(struct match *q, struct message *m);
void mq_drop(struct match *q, struct message *m);
void mq_empty(struct match *q, struct message *m);
void mq_store(struct match *q, struct message *m, const uint8_t *data, size_t n);
void mq_free_message(struct match *q, struct message *m);
void mq_arrived(struct match_inflow *in);
struct operation mq_operation_of(const struct match_message *m);
void mq_aim(struct message *m);
void mq_place(struct message *m, uint64_t at, const uint8_t *data, size_t n);

static inline uint64_t mq_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* mq_needs returns how many bytes of a buffer a message needs from where it begins. */
static inline uint64_t mq_needs(const struct message *m)
{
	return m->op.offset + mq_least(m->length, UINT64_MAX - m->op.offset);
}

#endif
