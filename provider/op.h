/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations under way: their places, buffers in the arena, and completions.
 */
#ifndef XDPFAB_OP_H
#define XDPFAB_OP_H

#include "xdpfab.h"

enum {
	PART = 1 << 20, /* the most bytes that one entry takes of an operation: see part_of */
};

/* The most bytes that one entry takes of an operation in a domain: the arena has room for
 * several. */
static inline size_t part_of(const struct domain *d)
{
	const size_t n = arena_largest(&d->g.space) / 4;

	return n < PART ? n : PART;
}

/* Where at the peer a part of an operation is. */
struct place {
	uint64_t offset, key;
	size_t count; /* elements */
};

/* An operation longer than part_of, which goes through two halves of a window of the arena. */
struct stream {
	struct stream *next; /* of the domain's */
	struct op *op;
	struct op *parts[2];	    /* that the daemon has, one for each half */
	struct iovec iov[MOST_IOV]; /* what is sent, or where it is put */
	size_t iov_count;
	struct place places[MOST_IOV];
	size_t place_count; /* 0 if it is at one place */
	size_t place;	    /* the first one that has bytes to hand over, */
	size_t within;	    /* and bytes of it that have been */
	uint64_t offset;    /* of the one place */
	size_t len, fed;    /* bytes in all; handed over */
	uint32_t half;	     /* bytes of a half */
	bool writes;	     /* it has operands, and no result */
	bool transfer;
	bool posted; /* the daemon has the operation itself */
	bool ended;  /* it needs no part any more */
};

struct op {
	struct ep *ep;
	void *context;
	uint64_t flags; /* of its completion */
	struct cntr *cntr; /* that counts its end, or NULL */
	bool used;
	bool wanted;	/* success has a completion */
	bool open;	/* its outcome may become known; the program has heard that it is unknown */
	bool outside;	/* its result lies in the arena */
	bool part;	/* it is a part of another one */
	uint8_t half;	/* of a part: of the window of its operation */
	struct op *of;	/* of a part: the operation, NULL after its end */
	uint32_t at, len; /* block of the arena; len 0 is none */
	uint32_t result;	/* where in the arena its result is */
	size_t first;	  /* of a part: bytes before it */
	uint32_t result_len; /* of the operation that is one entry, or of the part */
	struct iovec to[MOST_IOV]; /* of the result */
	size_t to_count;
	struct stream *stream;
};

/* What an operation is, for op_post. */
struct work {
	struct ep *ep;
	fi_addr_t to;
	void *context;
	uint64_t flags; /* of libfabric */
	uint64_t completion; /* flags of its completion */
	enum counted counts; /* by which counter of the endpoint; */
	bool deferred;	     /* but work that was queued by this one, which may be NULL */
	struct cntr *cntr;
	struct xdpfab_entry e; /* but for cookie, peer and operands */
	struct iovec from[MOST_IOV];	/* operands */
	size_t from_count;
	struct iovec compare[MOST_IOV]; /* compare operands */
	size_t compare_count;
	struct iovec result[MOST_IOV];
	size_t result_count;
	struct place places[MOST_IOV];
	size_t place_count; /* 0: e.key and e.offset say where it is */
	size_t operand_len, compare_len, result_len; /* bytes */
};

/* Posts an operation, whose buffers are the program's again unless it is longer than part_of
 * or has a result. Takes and releases the lock. */
ssize_t op_post(struct work *w);

/* Takes the completions that have come, and returns how many. */
size_t op_completions(struct domain *d);

/* Ends all operations: the daemon has ended. */
void op_end_all(struct domain *d);

/* Frees an operation, and its part of the arena. */
void op_free(struct domain *d, struct op *op);

/* Takes a place; NULL if none is free. */
struct op *op_take(struct domain *d);

/* The daemon has the entry of an operation. */
static inline void op_posted(struct op *op)
{
	if (op->stream != NULL)
		op->stream->posted = true;
}

/* Ends an operation that the daemon does not have. */
void op_fail(struct domain *d, struct op *op, int error);

/* Ends all operations of an endpoint that is being closed: nobody hears of that. */
void ops_leave(struct domain *d, const struct ep *ep);

/* Begins an operation of an endpoint that is enabled, in a domain that lives: 0, or a negative
 * error, when nothing has begun. The lock is held. */
int op_begin(struct work *w);

/* Tells the program how an operation has ended that has not begun. */
void work_failed(const struct work *w, int error, int prov_errno);

/* Writes where a place is, from an element on that has so many bytes before it, as the arena has
 * it. */
static inline void extent_write(const struct place *p, size_t within, uint8_t *to)
{
	const size_t rest = p->count - within;
	const struct xdpfab_extent x = {.offset = p->offset + within, .key = p->key,
					.count = rest < UINT32_MAX ? (uint32_t)rest : UINT32_MAX};

	memcpy(to, &x, sizeof x);
}

/* stream.c */
bool stream_begin(struct domain *d, struct op *op, struct work *w);
void stream_feed(struct domain *d);
void stream_part_done(struct domain *d, struct op *part, const struct xdpfab_completion *c);
void stream_end(struct domain *d, struct op *op);

/* errors.c: the errors of libfabric for what a completion says. */
int error_of(const struct xdpfab_completion *c);
const char *error_text(int prov_errno, char *buf, size_t len);

/* peer.c: posts an entry to a peer, now or when its number is known. Returns 0, or a
 * negative error when nothing has been posted. */
int peer_post(struct ep *ep, fi_addr_t to, struct xdpfab_entry *e);

size_t iov_len(const struct iovec *iov, size_t count);
/* Copies n bytes from an offset of the buffers on, or to there. */
void iov_read(const struct iovec *iov, size_t count, size_t offset, void *to, size_t n);
void iov_write(const struct iovec *iov, size_t count, size_t offset, const void *from, size_t n);

#endif
