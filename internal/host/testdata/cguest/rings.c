/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

enum { ENTRIES = 64, ARENA = 1 << 16, ARRIVALS = 1 << 16 };

/* Makes the segment, and returns its memfd. */
static int make_segment(struct guest *g) {
	size_t rings = ENTRIES * (sizeof *g->entries + sizeof *g->completions);
	size_t len = XDPFAB_PAGE + rings + ARENA + ARRIVALS;
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)len) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	g->header = (void *)p;
	g->entries = (void *)(p + XDPFAB_PAGE);
	g->completions = (void *)(g->entries + ENTRIES);
	g->arena = p + XDPFAB_PAGE + rings;
	g->arrivals = g->arena + ARENA;
	g->size = ENTRIES, g->arrivals_size = ARRIVALS;
	g->header->magic = XDPFAB_MAGIC, g->header->version = XDPFAB_VERSION;
	g->header->entries = ENTRIES, g->header->arena = ARENA;
	return fd;
}

int guest_attach(struct guest *g, const char *socket_path) {
	struct talk *t = &g->talk;
	memset(g, 0, sizeof *g);
	int err = talk_connect(t, socket_path);
	if (err)
		return err;
	int segment = make_segment(g);
	if (segment < 0)
		return segment;
	err = talk_call(t, "attach", segment,
		"{\"version\":%u,\"features\":[\"errno\",\"text\",\"waits\"],\"sizes\":{\"entries\":%d,\"arena\":%d,\"arrivals\":%d}}",
		XDPFAB_VERSION, ENTRIES, ARENA, ARRIVALS);
	close(segment);
	if (err)
		return err;
	const char *features = json_member(t->result, "features");
	if (t->file_count != 1 || !json_lists(features, "errno") || !json_lists(features, "text") ||
		!json_lists(features, "waits")) {
		snprintf(t->error, sizeof t->error, "the daemon lacks the features errno, text and waits: update it");
		return -ENOSYS;
	}
	g->doorbell = t->files[0];
	return 0;
}

static void ring(struct guest *g, uint32_t *sleeps) {
	if (__atomic_load_n(sleeps, __ATOMIC_SEQ_CST) && __atomic_exchange_n(sleeps, 0, __ATOMIC_SEQ_CST))
		send(g->doorbell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

struct xdpfab_entry *guest_entry(struct guest *g) {
	if (g->posted - __atomic_load_n(&g->header->taken, __ATOMIC_ACQUIRE) >= g->size)
		return NULL;
	struct xdpfab_entry *e = &g->entries[g->posted % g->size];
	memset(e, 0, sizeof *e);
	return e;
}

void guest_post(struct guest *g) {
	__atomic_store_n(&g->header->posted, ++g->posted, __ATOMIC_SEQ_CST);
	ring(g, &g->header->host_sleeps);
}

bool guest_completion(struct guest *g, struct xdpfab_completion *c) {
	if (__atomic_load_n(&g->header->completed, __ATOMIC_ACQUIRE) == g->seen)
		return false;
	*c = g->completions[g->seen % g->size];
	__atomic_store_n(&g->header->seen, ++g->seen, __ATOMIC_RELEASE);
	if (c->flags & XDPFAB_COMPLETED_OPEN) /* the host may wait for room to tell what has become known */
		ring(g, &g->header->host_sleeps);
	return true;
}

/* Copies from a position of the ring of arrivals, around its end. */
static void copy_out(struct guest *g, void *to, uint64_t from, size_t n) {
	size_t at = from % g->arrivals_size, whole = g->arrivals_size - at;
	size_t before = n < whole ? n : whole;
	memcpy(to, g->arrivals + at, before);
	memcpy((char *)to + before, g->arrivals, n - before);
}

bool guest_arrival(struct guest *g, struct xdpfab_arrival *a, void *bytes, size_t room) {
	if (__atomic_load_n(&g->header->arrived, __ATOMIC_ACQUIRE) == g->read)
		return false;
	copy_out(g, a, g->read, sizeof *a);
	copy_out(g, bytes, g->read + sizeof *a, a->bytes < room ? a->bytes : room);
	g->read += (sizeof *a + a->bytes + 63) / 64 * 64;
	__atomic_store_n(&g->header->read, g->read, __ATOMIC_SEQ_CST);
	ring(g, &g->header->host_waits);
	return true;
}

bool guest_sleep(struct guest *g) {
	__atomic_store_n(&g->header->guest_sleeps, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&g->header->completed, __ATOMIC_SEQ_CST) != g->seen ||
		__atomic_load_n(&g->header->arrived, __ATOMIC_SEQ_CST) != g->read)
		return true;
	struct pollfd p = {.fd = g->doorbell, .events = POLLIN};
	int ready = poll(&p, 1, 60000);
	if (ready != 1)
		return ready < 0 && errno == EINTR;
	char b[64];
	return recv(g->doorbell, b, sizeof b, MSG_DONTWAIT) > 0; /* 0: the daemon has gone */
}
