/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

enum {
	TEXT = 64 << 10,
	PATIENCE = 20, /* ms without a call after which one that has damaged something ends */
};

static const char offer[] =
	"{\"version\":3,\"features\":[\"errno\",\"text\",\"peers\",\"attended\"],\"netns\":4026531840,\"pid\":812,"
	"\"interface\":\"eyJuYW1lIjoiZXRoMCJ9\",\"mac\":[2,0,0,0,0,10],\"address\":\"02:00:00:00:00:0a\",\"mtu\":1500,"
	"\"networks\":[\"10.0.0.1/24\",\"fd00::1/64\"],\"rule\":\"rule guest[0]\","
	"\"sizes\":{\"entries\":64,\"arena\":65536,\"arrivals\":65536},"
	"\"endpoints\":256,\"peers\":65536,\"regions\":1024}";

/* A conversation. */
struct side {
	struct fake *f;
	int fd, bell;
	uint32_t numbers; /* of endpoints and peers */
	bool damaged;
	uint32_t seed;
};

static struct {
	struct fake *f;
	pthread_t thread;
	int listener, stop[2];
	char path[108];
} here;

uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

/* Sends bytes, the first with file descriptors. Returns false after the cut. */
static bool send_all(struct side *s, const char *bytes, size_t n, const int *fds, size_t fd_count)
{
	for (size_t at = 0; at < n;) {
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(4 * sizeof(int))];
		} control = {.room = {0}};
		struct iovec part = {(void *)(uintptr_t)(bytes + at), s->f->in_bytes ? 1 : n - at};
		struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t sent;

		if (s->f->cut >= 0 && (long)part.iov_len > s->f->cut - s->f->said)
			part.iov_len = (size_t)(s->f->cut - s->f->said);
		if (part.iov_len == 0)
			return false;
		if (at == 0 && fd_count > 0) {
			struct cmsghdr *c;

			m.msg_control = control.room;
			m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
			c = CMSG_FIRSTHDR(&m);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
			memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
		}
		sent = sendmsg(s->fd, &m, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		at += (size_t)sent;
		__atomic_add_fetch(&s->f->said, sent, __ATOMIC_RELAXED);
	}
	return true;
}

/* Receives so many bytes, and perhaps a file descriptor, which is closed. */
static bool receive_all(struct side *s, char *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(sizeof(int))];
		} control;
		struct pollfd p[] = {{.fd = s->fd, .events = POLLIN}, {.fd = here.stop[0], .events = POLLIN}};
		struct iovec part = {to + at, n - at};
		struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
				   .msg_controllen = sizeof control.room};
		struct cmsghdr *c;
		ssize_t got;

		if (poll(p, 2, s->damaged ? PATIENCE : -1) <= 0 || p[1].revents != 0)
			return false;
		got = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC);
		if (got <= 0)
			return false;
		for (c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c), sizeof fd);
			close(fd);
		}
		at += (size_t)got;
	}
	return true;
}

static const char *const numbers[] = {"0", "-1", "256", "65535", "65536", "2147483648", "4294967296",
				      "18446744073709551615", "18446744073709551616", "1e9", "null", "\"5\"", "[]"};

static const char *const oddities[] = {
	"", "{", "{}", "null", "[[[[[[[[[[[[[[[[[[[[[[", "{\"id\":1}", "{\"id\":0,\"error\":\"you have to go\"}",
	"{\"id\":2,\"result\":{}}", "{\"id\":2,\"error\":\"no\",\"errno\":0}",
	"{\"id\":3,\"error\":\"no\",\"errno\":4294967296}",
	"{\"id\":3,\"error\":\"no\",\"errno\":2147483649}", "{\"id\":2,\"result\":null}", "\"id\"",
	"{\"id\":1,\"result\":{\"interface\":\"!\",\"mac\":7,\"networks\":[\"1/\",\"/\",5],\"sizes\":[]}}",
};

/* Replaces a number of a text. */
static size_t lie(struct side *s, char *text, size_t n)
{
	const char *other = numbers[draw(&s->seed, sizeof numbers / sizeof *numbers)];
	size_t from = draw(&s->seed, (uint32_t)n), to;

	while (from < n && (text[from] < '0' || text[from] > '9'))
		from++;
	for (to = from; to < n && text[to] >= '0' && text[to] <= '9';)
		to++;
	memmove(text + from + strlen(other), text + to, n - to);
	memcpy(text + from, other, strlen(other));
	return n + strlen(other) - (to - from);
}

/* Damages a text behind its length, and the length. */
static size_t damage(struct side *s, char *text, size_t n)
{
	const char *odd = oddities[draw(&s->seed, sizeof oddities / sizeof *oddities)];
	uint32_t len;

	s->damaged = true;
	switch (draw(&s->seed, 6)) {
	case 0:
		for (uint32_t i = 1 + draw(&s->seed, 4); i > 0; i--)
			text[4 + draw(&s->seed, (uint32_t)n - 4)] = (char)draw(&s->seed, 256);
		return n;
	case 1:
		text[draw(&s->seed, 4)] = (char)draw(&s->seed, 256);
		return n;
	case 2:
		memcpy(text + 4, odd, strlen(odd));
		n = 4 + strlen(odd);
		break;
	default:
		n = 4 + lie(s, text + 4, n - 4);
	}
	len = (uint32_t)(n - 4);
	memcpy(text, &len, sizeof len);
	return n;
}

static bool answer(struct side *s, unsigned long long id, const char *result, int fd)
{
	static _Thread_local char text[TEXT];
	const bool harm = s->f->damage != 0 && draw(&s->seed, 6) == 0;
	const int fds[4] = {fd >= 0 ? fd : 2, 2, 2, 2};
	size_t count = fd >= 0, n = 4;
	uint32_t len;

	n += (size_t)snprintf(text + n, sizeof text - n, "{\"id\":%llu,\"result\":%s}", id, result);
	len = (uint32_t)n - 4;
	memcpy(text, &len, sizeof len);
	if (harm && draw(&s->seed, 4) == 0) {
		count = draw(&s->seed, 5);
		s->damaged = true;
	} else if (harm) {
		n = damage(s, text, n);
	}
	return send_all(s, text, n, fds, count);
}

static bool refuse(struct side *s, unsigned long long id)
{
	char text[256];
	const int n = snprintf(text + 4, sizeof text - 4, "{\"id\":%llu,\"error\":\"no\",\"errno\":%s}", id,
			       s->f->refusal);
	const uint32_t len = (uint32_t)n;

	memcpy(text, &len, sizeof len);
	return send_all(s, text, 4 + len, NULL, 0);
}

static bool attach(struct side *s, unsigned long long id)
{
	int pair[2];
	bool ok;

	if (s->f->refusal != NULL)
		return refuse(s, id);
	CHECK(s->bell < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%s", strerror(errno));
	s->bell = pair[0];
	__atomic_add_fetch(&s->f->attached, 1, __ATOMIC_RELAXED);
	ok = answer(s, id, offer, pair[1]);
	close(pair[1]);
	return ok;
}

/* Answers a call. */
static bool serve(struct side *s, const char *text)
{
	const char *verb = strstr(text, "\"verb\":\"");
	unsigned long long id;
	char number[16];

	CHECK(sscanf(text, "{\"id\":%llu", &id) == 1 && verb != NULL, "a call: %s", text);
	verb += strlen("\"verb\":\"");
	if (strncmp(verb, "offer\"", 6) == 0)
		return answer(s, id, offer, -1);
	if (strncmp(verb, "attach\"", 7) == 0)
		return attach(s, id);
	if (strncmp(verb, "endpoint\"", 9) == 0 || strncmp(verb, "peer\"", 5) == 0) {
		snprintf(number, sizeof number, "%u", ++s->numbers);
		return answer(s, id, number, -1);
	}
	return answer(s, id, "null", -1);
}

static void converse(struct side *s)
{
	static const char upgraded[] =
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: xdpfab\r\n\r\n";
	char text[TEXT], head[4] = "";
	uint32_t len;

	while (memcmp(head, "\r\n\r\n", 4) != 0) {
		memmove(head, head + 1, 3);
		if (!receive_all(s, head + 3, 1))
			return;
	}
	usleep((useconds_t)s->f->late * 1000);
	if (!send_all(s, upgraded, sizeof upgraded - 1, NULL, 0))
		return;
	while (receive_all(s, (char *)&len, sizeof len)) {
		CHECK(len < sizeof text, "a call of %u bytes", len);
		if (!receive_all(s, text, len))
			return;
		text[len] = 0;
		if (!serve(s, text))
			return;
	}
}

static void *conversation(void *arg)
{
	struct side *s = arg;

	converse(s);
	close(s->fd);
	if (s->bell >= 0)
		close(s->bell);
	free(s);
	return NULL;
}

/* One conversation after another: programs have one at a time, but for those that they do
 * not use any more. */
static void *accept_all(void *arg)
{
	struct fake *f = arg;
	uint32_t conversations = 0;

	for (;;) {
		struct pollfd p[] = {{.fd = here.listener, .events = POLLIN}, {.fd = here.stop[0], .events = POLLIN}};
		struct side *s;
		int fd;

		poll(p, 2, -1);
		if (p[1].revents != 0)
			return NULL;
		fd = accept4(here.listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		s = calloc(1, sizeof *s);
		*s = (struct side){.f = f, .fd = fd, .bell = -1, .seed = f->damage + conversations++};
		conversation(s);
	}
}

void fake_start(struct fake *f, const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	here.f = f;
	snprintf(here.path, sizeof here.path, "%s", path);
	memcpy(at.sun_path, here.path, sizeof at.sun_path);
	unlink(path);
	here.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(here.listener >= 0 && bind(here.listener, (struct sockaddr *)&at, sizeof at) == 0 &&
		      listen(here.listener, 16) == 0 && pipe(here.stop) == 0,
	      "%s: %s", path, strerror(errno));
	CHECK(pthread_create(&here.thread, NULL, accept_all, f) == 0, "a thread");
}

void fake_stop(void)
{
	if (here.f == NULL)
		return;
	here.f = NULL;
	CHECK(write(here.stop[1], "", 1) == 1, "the pipe");
	pthread_join(here.thread, NULL);
	close(here.listener);
	close(here.stop[0]);
	close(here.stop[1]);
	unlink(here.path);
}
