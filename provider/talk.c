/* SPDX-License-Identifier: Apache-2.0 */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "wait.h"

enum {
	MOST = 64 << 10,   /* bytes of a text */
	LENGTH = 4,        /* bytes of its length */
	HEAD = 1024,       /* bytes of the answer to the request to upgrade, at most */
	UNSENT = 16 << 20, /* bytes that a daemon may leave unread before it counts as lost */
	MOST_ERROR = 4095, /* the number of an error, as of the system's */
};

/* Waits until the socket is ready. Returns false after the deadline. */
static bool wait_for(int fd, short events, int64_t deadline)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		const int n = poll(&p, 1, left_of(deadline));

		if (n > 0)
			return true;
		if (n == 0 || errno != EINTR)
			return false;
	}
}

static int fails(struct talk *t, int error, const char *text)
{
	snprintf(t->why, sizeof t->why, "%s", text);
	talk_close(t);
	return -error;
}

static const char hello[] = "POST /v1/attach HTTP/1.1\r\nHost: xdpfabd\r\nConnection: Upgrade\r\n"
			    "Upgrade: xdpfab\r\nContent-Length: 0\r\n\r\n";

int talk_open(struct talk *t, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	*t = (struct talk){.fd = -1, .came = -1};
	if (strlen(path) >= sizeof to.sun_path)
		return fails(t, ENAMETOOLONG, "the path of the socket is longer than a socket's address");
	memcpy(to.sun_path, path, strlen(path) + 1);
	t->in = malloc(LENGTH + MOST);
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->in == NULL || t->fd < 0)
		return fails(t, FI_ENOMEM, "no memory, or no file descriptor");
	if (connect(t->fd, (struct sockaddr *)&to, sizeof to) != 0) {
		const int error = errno;

		return fails(t, error, strerror(error));
	}
	if (send(t->fd, hello, sizeof hello - 1, MSG_NOSIGNAL) != sizeof hello - 1)
		return fails(t, EPROTO, "the daemon does not take requests");
	return 0;
}

/* The daemon has refused to converse. */
static void refused(struct talk *t, int error, const char *text)
{
	snprintf(t->why, sizeof t->why, "%s", text);
	t->error = error;
	t->lost = true;
}

/* Reads the head of the answer to the request to upgrade, byte by byte, since what follows
 * it belongs to the conversation, which begins then or is lost. */
static void upgrade(struct talk *t)
{
	int status = 0;

	while (t->has < 4 || memcmp(t->in + t->has - 4, "\r\n\r\n", 4) != 0) {
		const ssize_t n = t->has == HEAD ? 0 : recv(t->fd, t->in + t->has, 1, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			break;
		t->has++;
	}
	t->in[t->has] = 0;
	t->has = 0;
	sscanf(t->in, "HTTP/1.%*1d %3d", &status);
	switch (status) {
	case 101:
		t->upgraded = true;
		return;
	case 403:
		refused(t, FI_EACCES, "the rules of the daemon do not allow this user: see xdpfabd --guest");
		return;
	case 404:
	case 405:
		refused(t, FI_ENOSYS, "the daemon lets no programs attach: give it a rule, --guest");
		return;
	}
	refused(t, EPROTO, "the daemon does not upgrade the connection");
}

void talk_close(struct talk *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->came >= 0)
		close(t->came);
	free(t->in);
	free(t->out);
	t->fd = t->came = -1;
	t->in = t->out = NULL;
	t->has = t->out_len = t->out_room = 0;
}

/* Ends the conversation, and all calls with it. */
static int lose(struct talk *t)
{
	struct reply r = {.error = t->error != 0 ? t->error : FI_ENETDOWN, .fd = -1};
	int n = 0;

	t->lost = true;
	snprintf(r.text, sizeof r.text, "%s", t->why[0] != 0 ? t->why : "the daemon has ended");
	while (t->under_way != NULL) {
		struct call *c = t->under_way;

		t->under_way = c->next;
		c->done(c, &r);
		n++;
	}
	return n;
}

/* Sends what has not been sent yet. */
static bool flush(struct talk *t)
{
	while (t->upgraded && t->out_len > 0) {
		const ssize_t n = send(t->fd, t->out, t->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		memmove(t->out, t->out + n, t->out_len - (size_t)n);
		t->out_len -= (size_t)n;
	}
	return true;
}

/* Sends the first byte of what is to be sent with a file descriptor. */
static bool send_with(struct talk *t, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.room = {0}};
	struct iovec first = {t->out, 1};
	struct msghdr m = {.msg_iov = &first, .msg_iovlen = 1, .msg_control = control.room,
			   .msg_controllen = sizeof control.room};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (!wait_for(t->fd, POLLOUT, deadline_of(10000)) || sendmsg(t->fd, &m, MSG_NOSIGNAL) != 1)
		return false;
	memmove(t->out, t->out + 1, --t->out_len);
	return true;
}

static bool reserve(struct talk *t, size_t n)
{
	char *more;

	if (t->out_len + n <= t->out_room)
		return true;
	if (t->out_len + n > UNSENT)
		return false;
	more = realloc(t->out, 2 * (t->out_len + n));
	if (more == NULL)
		return false;
	t->out = more;
	t->out_room = 2 * (t->out_len + n);
	return true;
}

void talk_begin(struct talk *t, struct call *call, const char *verb, const char *arguments, int fd)
{
	const size_t room = strlen(verb) + strlen(arguments) + 80;
	const size_t at = t->out_len;
	struct call **last = &t->under_way;
	uint32_t len;
	int n;

	call->id = ++t->last;
	call->next = NULL;
	while (*last != NULL)
		last = &(*last)->next;
	*last = call;
	if (t->lost || !reserve(t, LENGTH + room)) {
		lose(t);
		return;
	}
	n = snprintf(t->out + at + LENGTH, room, "{\"id\":%llu,\"verb\":\"%s\",\"arguments\":%s}",
		     (unsigned long long)call->id, verb, arguments);
	len = (uint32_t)n;
	memcpy(t->out + at, &len, LENGTH);
	t->out_len += LENGTH + len;
	/* A descriptor goes with the first byte of its text, so what is before that goes first. */
	if (fd >= 0 && (at > 0 || !t->upgraded || !send_with(t, fd)))
		lose(t);
	else if (!flush(t))
		lose(t);
}

/* Takes the descriptors out of a control message: one is kept, and no text has more. */
static void keep(struct talk *t, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (t->came < 0)
				t->came = fd;
			else
				close(fd);
		}
	}
}

/* Receives at most so many bytes. Returns false if none have come. */
static bool receive(struct talk *t, size_t most)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec to = {t->in + t->has, most};
	struct msghdr m = {.msg_iov = &to, .msg_iovlen = 1, .msg_control = control.room,
			   .msg_controllen = sizeof control.room};
	const ssize_t n = recvmsg(t->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n > 0) {
		keep(t, &m);
		t->has += (size_t)n;
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		t->lost = true;
	return false;
}

/* The number of an error of fi_errno(3), whatever the daemon says. */
static int error_number(struct json v)
{
	const uint64_t n = json_number(v, FI_EOTHER);

	return n == 0 || n > MOST_ERROR ? FI_EOTHER : (int)n;
}

int reply_error(struct json answer, char *text, size_t room)
{
	const struct json error = json_member(answer, "error");

	json_text(error, text, room);
	return error.from == NULL ? 0 : error_number(json_member(answer, "errno"));
}

/* Passes an answer to its call. One without a call tells why the conversation ends. */
static void answer(struct talk *t, size_t len)
{
	const struct json text = json_of(t->in + LENGTH, len);
	const uint64_t id = json_number(json_member(text, "id"), 0);
	struct reply r = {.result = json_member(text, "result"), .fd = t->came};

	t->came = -1;
	r.error = reply_error(text, r.text, sizeof r.text);
	for (struct call **at = &t->under_way; *at != NULL; at = &(*at)->next) {
		struct call *c = *at;

		if (c->id == id) {
			*at = c->next;
			c->done(c, &r);
			return;
		}
	}
	if (r.fd >= 0)
		close(r.fd);
	if (r.error != 0)
		memcpy(t->why, r.text, sizeof t->why);
}

int talk_step(struct talk *t)
{
	if (!t->lost && !t->upgraded)
		upgrade(t);
	if (!t->lost && !flush(t))
		t->lost = true;
	while (!t->lost) {
		uint32_t len = 0;
		size_t want = LENGTH;

		if (!t->upgraded)
			return 0;
		if (t->has >= LENGTH) {
			memcpy(&len, t->in, LENGTH);
			if (len > MOST)
				break;
			want = LENGTH + len;
		}
		if (t->has >= LENGTH && t->has == want) {
			t->has = 0;
			answer(t, len);
			return 1;
		}
		if (!receive(t, want - t->has) && !t->lost)
			return 0;
	}
	return lose(t);
}

short talk_events(const struct talk *t)
{
	return t->upgraded && t->out_len > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* A call that is waited for. */
struct waited {
	struct call call;
	struct reply *reply;
	bool done;
};

static void waited_done(struct call *call, const struct reply *reply)
{
	struct waited *w = (struct waited *)call;

	*w->reply = *reply;
	w->done = true;
}

int talk_call(struct talk *t, const char *verb, const char *arguments, int fd, int limit, struct reply *reply)
{
	const int64_t deadline = deadline_of(limit);
	struct waited w = {.call = {.done = waited_done}, .reply = reply};

	talk_begin(t, &w.call, verb, arguments, fd);
	while (!w.done) {
		if (!wait_for(t->fd, talk_events(t), deadline)) {
			snprintf(t->why, sizeof t->why, "the daemon has not answered %s for %d ms", verb, limit);
			lose(t); /* its answer must not meet another call */
			break;
		}
		while (!w.done && talk_step(t) > 0)
			;
	}
	return -reply->error;
}
