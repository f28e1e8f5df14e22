/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "info.h"
#include "prov.h"

enum {
	ENTRIES = 4096,	       /* the most that the provider asks for */
	ARENA = 16 << 20,      /* bytes, likewise */
	ARRIVALS = 1 << 20,    /* bytes, likewise */
	LEAST_ENTRIES = 16,    /* the least that a daemon takes */
	LEAST_BYTES = 1 << 16, /* likewise, of arena and arrivals */
};

struct sizes {
	uint32_t entries, arena, arrivals;
};

/* The largest power of two that a parameter and the daemon allow. */
static uint32_t size(const char *name, uint32_t usual, uint32_t least, uint64_t most)
{
	const int wanted = param_number(name, (int)usual);
	uint32_t n = wanted <= (int)least ? least : 1u << (31 - __builtin_clz((unsigned)wanted));

	while (n > least && n > most)
		n /= 2;
	return n;
}

/* Makes the memory to share, of its final size. A child does not get it: two processes must
 * not post into one ring. */
static int make_area(struct guest *g, const struct sizes *s)
{
	const size_t rings = XDPFAB_PAGE + s->entries * (sizeof *g->sq + sizeof *g->cq);

	g->area_len = rings + s->arena + s->arrivals;
	g->memfd = memfd_create("xdpfab rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (g->memfd < 0 || ftruncate(g->memfd, (off_t)g->area_len) != 0 ||
	    fcntl(g->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	g->area = mmap(NULL, g->area_len, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	if (g->area == MAP_FAILED) {
		g->area = NULL;
		return -errno;
	}
	madvise(g->area, g->area_len, MADV_DONTFORK);
	g->h = (void *)g->area;
	g->sq = (void *)(g->area + XDPFAB_PAGE);
	g->cq = (void *)(g->sq + s->entries);
	g->data = (void *)(g->cq + s->entries);
	g->arrivals = g->data + s->arena;
	g->entries = s->entries;
	g->arrivals_len = s->arrivals;
	g->h->magic = XDPFAB_MAGIC;
	g->h->version = XDPFAB_VERSION;
	g->h->entries = s->entries;
	g->h->arena = s->arena;
	return arena_make(&g->space, s->arena) ? 0 : -FI_ENOMEM;
}

/* Asks for another give-up time, if there is one to ask for. */
static int tune(struct guest *g, const char *path)
{
	const int limit = param_number("give_up", 0);
	struct reply r;
	char text[60];
	int error;

	if (limit <= 0)
		return 0;
	snprintf(text, sizeof text, "{\"give_up\":%lld}", limit * 1000000ll);
	error = talk_call(&g->talk, "tune", text, -1, ANSWER_MS, &r);
	if (error != 0)
		WARN(DOMAIN, "daemon at %s: a give-up time of %d ms: %s\n", path, limit, r.text);
	if (r.fd >= 0)
		close(r.fd);
	return error;
}

static int attach(struct guest *g, const char *path)
{
	struct offer o;
	struct reply r;
	struct sizes s;
	char text[256];
	int error = offer_ask(&g->talk, path, ANSWER_MS, &o);

	if (error != 0)
		return error;
	s.entries = size("entries", ENTRIES, LEAST_ENTRIES, o.entries);
	s.arena = size("arena", ARENA, LEAST_BYTES, o.arena);
	s.arrivals = size("arrivals", ARRIVALS, LEAST_BYTES, o.arrivals);
	error = make_area(g, &s);
	if (error != 0) {
		WARN(DOMAIN, "shared memory of %zu bytes: %s\n", g->area_len, strerror(-error));
		return error;
	}
	snprintf(text, sizeof text,
		 "{\"version\":%u,\"features\":[\"errno\",\"text\",\"attended\",\"long\",\"peers\"],"
		 "\"sizes\":{\"entries\":%u,\"arena\":%u,\"arrivals\":%u}}",
		 XDPFAB_VERSION, s.entries, s.arena, s.arrivals);
	error = talk_call(&g->talk, "attach", text, g->memfd, ANSWER_MS, &r);
	g->bell = r.fd;
	g->mtu = json_number(json_member(r.result, "mtu"), 0);
	g->attended = offer_has(json_member(r.result, "features"), "attended");
	g->lists = offer_has(json_member(r.result, "features"), "peers");
	g->longest = offer_has(json_member(r.result, "features"), "long") ? MOST_MESSAGE : SHORT_MESSAGE;
	if (error != 0)
		WARN(DOMAIN, "daemon at %s: %s\n", path, r.text);
	if (error != 0)
		return error;
	return g->bell < 0 ? -EPROTO : tune(g, path);
}

int guest_attach(struct guest *g, const char *path)
{
	int error;

	*g = (struct guest){.memfd = -1, .bell = -1};
	error = talk_open(&g->talk, path);
	if (error != 0) {
		WARN(DOMAIN, "daemon at %s: %s\n", path, g->talk.why);
		return error;
	}
	error = attach(g, path);
	if (error != 0)
		guest_detach(g);
	return error;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void guest_detach(struct guest *g)
{
	talk_close(&g->talk);
	close_fd(&g->bell);
	close_fd(&g->memfd);
	if (g->area != NULL)
		munmap(g->area, g->area_len);
	arena_free(&g->space);
	free(g->notes);
	g->area = NULL;
	g->notes = NULL;
}

/* Nothing else may be done between fork and exec. */
void guest_forked(struct guest *g)
{
	close_fd(&g->talk.fd);
	close_fd(&g->bell);
	close_fd(&g->memfd);
	g->area = NULL; /* the child has no mapping of it */
}

void guest_ring_bell(struct guest *g)
{
	send(g->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void guest_note(struct guest *g, const struct xdpfab_entry *e)
{
	struct xdpfab_entry *to = g->note_count == 0 ? guest_entry(g) : NULL;

	if (to != NULL) {
		*to = *e;
		guest_show(g);
		return;
	}
	if (g->note_count == g->note_room) {
		const size_t room = 2 * g->note_room + 16;
		struct xdpfab_entry *more = realloc(g->notes, room * sizeof *more);

		if (more == NULL) { /* an answer that is lost would have a peer wait for ever */
			g->talk.lost = true;
			return;
		}
		g->notes = more;
		g->note_room = room;
	}
	g->notes[g->note_count++] = *e;
}

void guest_tell(struct guest *g)
{
	size_t n = 0;

	while (n < g->note_count) {
		struct xdpfab_entry *to = guest_entry(g);

		if (to == NULL)
			break;
		*to = g->notes[n++];
	}
	if (n > 0) {
		memmove(g->notes, g->notes + n, (g->note_count - n) * sizeof *g->notes);
		g->note_count -= n;
		guest_show(g);
	}
}

bool guest_sleep(struct guest *g)
{
	__atomic_store_n(&g->h->guest_sleeps, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&g->h->completed, __ATOMIC_SEQ_CST) == g->seen &&
	       __atomic_load_n(&g->h->arrived, __ATOMIC_SEQ_CST) == g->read;
}

void guest_hush(struct guest *g)
{
	char rung[64];

	for (int i = 0; i < 1024; i++)
		if (recv(g->bell, rung, sizeof rung, MSG_DONTWAIT) <= 0)
			break;
}

void guest_copy(const struct guest *g, uint64_t at, void *to, size_t n)
{
	const size_t from = at & (g->arrivals_len - 1), first = g->arrivals_len - from;

	if (n <= first) {
		memcpy(to, g->arrivals + from, n);
		return;
	}
	memcpy(to, g->arrivals + from, first);
	memcpy((uint8_t *)to + first, g->arrivals, n - first);
}

void guest_has_read(struct guest *g, uint64_t to)
{
	g->read = to;
	__atomic_store_n(&g->h->read, to, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&g->h->host_waits, __ATOMIC_SEQ_CST) != 0 &&
	    __atomic_exchange_n(&g->h->host_waits, 0, __ATOMIC_SEQ_CST) != 0)
		guest_ring_bell(g);
}
