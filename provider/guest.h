/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest of a daemon: the memory that they share, its rings, and the conversation. It
 * belongs to whoever holds the domain's lock.
 */
#ifndef XDPFAB_GUEST_H
#define XDPFAB_GUEST_H

#include <string.h>

#include <xdpfab/ring.h>

#include "arena.h"
#include "offer.h"

enum {
	ANSWER_MS = 60000, /* for the daemon to answer a call, after which it counts as ended */
};

struct guest {
	struct talk talk;
	int memfd, bell;
	uint8_t *area; /* what memfd is mapped at */
	size_t area_len;
	struct xdpfab_header *h;
	struct xdpfab_entry *sq;
	struct xdpfab_completion *cq;
	uint8_t *data;	   /* the arena */
	uint8_t *arrivals; /* the ring of arrivals */
	uint32_t entries, arrivals_len; /* both powers of two */
	uint64_t posted, taken, seen, read; /* positions as this side knows them */
	struct arena space;
	struct xdpfab_entry *notes; /* entries without completion for which there was no room */
	size_t note_count, note_room;
	bool attended; /* the daemon hands over operations on memory that it has not mapped */
	bool lists; /* the daemon gives numbers to many peers at once */
	size_t longest; /* bytes of a message or a transfer */
	size_t mtu;	/* of the interface */
};

/* Attaches to the daemon of a control socket. Returns 0 or a negative error, and says why
 * in the log. */
int guest_attach(struct guest *g, const char *path);
void guest_detach(struct guest *g);

/* Closes what a child has inherited: the daemon must learn of the end of the parent. */
void guest_forked(struct guest *g);

/* Whether the ring was full when an entry was last added, or could not be. */
static inline bool guest_full(const struct guest *g)
{
	return g->posted - g->taken >= g->entries;
}

/* Adds the next entry; NULL if the ring is full. guest_show lets the daemon see all that
 * were added. */
static inline struct xdpfab_entry *guest_entry(struct guest *g)
{
	if (guest_full(g)) {
		g->taken = __atomic_load_n(&g->h->taken, __ATOMIC_ACQUIRE);
		if (guest_full(g))
			return NULL;
	}
	return &g->sq[g->posted++ & (g->entries - 1)];
}

void guest_ring_bell(struct guest *g);

static inline void guest_show(struct guest *g)
{
	__atomic_store_n(&g->h->posted, g->posted, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&g->h->host_sleeps, __ATOMIC_SEQ_CST) != 0 &&
	    __atomic_exchange_n(&g->h->host_sleeps, 0, __ATOMIC_SEQ_CST) != 0)
		guest_ring_bell(g);
}

/* Adds an entry that has no completion, now or when there is room, and shows it. */
void guest_note(struct guest *g, const struct xdpfab_entry *e);

/* Adds notes that had to wait. */
void guest_tell(struct guest *g);

/* Whether something has come in the rings. */
static inline bool guest_has(const struct guest *g)
{
	return __atomic_load_n(&g->h->completed, __ATOMIC_ACQUIRE) != g->seen ||
	       __atomic_load_n(&g->h->arrived, __ATOMIC_ACQUIRE) != g->read;
}

/* Asks for the bell to be rung when something comes. Returns false if something has come. */
bool guest_sleep(struct guest *g);

/* Takes what has been rung. */
void guest_hush(struct guest *g);

/* Copies from a position of the ring of arrivals. */
void guest_copy(const struct guest *g, uint64_t at, void *to, size_t n);

/* Lets the daemon know that everything before a position has been read. */
void guest_has_read(struct guest *g, uint64_t to);

#endif
