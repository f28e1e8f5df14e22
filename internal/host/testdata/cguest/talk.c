/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest.h"

static int fail(struct talk *t, int code, const char *why) {
	snprintf(t->error, sizeof t->error, "%s: %s", why, strerror(code));
	return -code;
}

/* Sends all of it, and a file, unless that is -1, with the first byte. */
static int send_all(struct talk *t, const void *bytes, size_t n, int file) {
	union {
		char space[CMSG_SPACE(sizeof file)];
		struct cmsghdr align;
	} control;
	const char *p = bytes;
	while (n > 0) {
		struct iovec v = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
		struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
		if (file >= 0) {
			memset(&control, 0, sizeof control);
			m.msg_control = control.space, m.msg_controllen = sizeof control.space;
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);
			c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof file);
			memcpy(CMSG_DATA(c), &file, sizeof file);
		}
		ssize_t sent = sendmsg(t->fd, &m, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return fail(t, errno, "send to the daemon");
		p += sent, n -= (size_t)sent, file = -1;
	}
	return 0;
}

/* Keeps the files that came with a piece of a text. */
static void keep_files(struct talk *t, struct msghdr *m) {
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int file;
			memcpy(&file, CMSG_DATA(c) + i * sizeof file, sizeof file);
			if (t->file_count < TALK_FILES)
				t->files[t->file_count++] = file;
			else
				close(file);
		}
	}
}

static int receive_all(struct talk *t, void *bytes, size_t n) {
	union {
		char space[CMSG_SPACE(sizeof(int) * TALK_FILES)];
		struct cmsghdr align;
	} control;
	char *p = bytes;
	while (n > 0) {
		struct iovec v = {.iov_base = p, .iov_len = n};
		struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.space,
			.msg_controllen = sizeof control.space};
		ssize_t got = recvmsg(t->fd, &m, MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fail(t, got == 0 ? ECONNRESET : errno, "receive from the daemon");
		keep_files(t, &m);
		p += got, n -= (size_t)got;
	}
	return 0;
}

/* Leaves HTTP: reads no byte behind the empty line. */
static int upgrade(struct talk *t) {
	static const char request[] = "POST /v1/attach HTTP/1.1\r\nHost: xdpfabd\r\nConnection: Upgrade\r\n"
		"Upgrade: xdpfab\r\nContent-Length: 0\r\n\r\n";
	int err = send_all(t, request, sizeof request - 1, -1);
	size_t n = 0;
	for (t->text[0] = 0; err == 0 && strstr(t->text, "\r\n\r\n") == NULL && n < 4096; t->text[n] = 0)
		err = receive_all(t, &t->text[n++], 1);
	if (err)
		return err;
	if (strncmp(t->text, "HTTP/1.1 101 ", 13) == 0)
		return 0;
	ssize_t more = recv(t->fd, t->error, sizeof t->error - 1, 0); /* the reason */
	t->error[more > 0 ? more : 0] = 0;
	return strncmp(t->text, "HTTP/1.1 403 ", 13) == 0 ? -EPERM : -EPROTO;
}

int talk_connect(struct talk *t, const char *socket_path) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (strlen(socket_path) >= sizeof a.sun_path)
		return fail(t, ENAMETOOLONG, socket_path);
	strcpy(a.sun_path, socket_path);
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval minute = {.tv_sec = 60};
	if (t->fd < 0 || setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute) < 0 ||
		connect(t->fd, (struct sockaddr *)&a, sizeof a) < 0)
		return fail(t, errno, socket_path);
	return upgrade(t);
}

int talk_call(struct talk *t, const char *verb, int file, const char *arguments, ...) {
	static const char end[] = "}";
	va_list list;
	int head = snprintf(t->text, sizeof t->text, "{\"id\":%llu,\"verb\":\"%s\",\"arguments\":",
		(unsigned long long)++t->calls, verb);
	va_start(list, arguments);
	int n = head + vsnprintf(t->text + head, sizeof t->text - (size_t)head, arguments, list);
	va_end(list);
	if ((size_t)n + sizeof end > sizeof t->text)
		return fail(t, E2BIG, verb);
	strcpy(t->text + n, end);
	uint32_t len = (uint32_t)n + 1;
	t->file_count = 0;
	int err = send_all(t, &len, sizeof len, -1);
	if (err == 0)
		err = send_all(t, t->text, len, file);
	if (err == 0)
		err = receive_all(t, &len, sizeof len);
	if (err == 0 && len > TALK_TEXT)
		err = fail(t, EPROTO, "length of a text");
	if (err == 0)
		err = receive_all(t, t->text, len);
	if (err)
		return err;
	t->text[len] = 0;
	t->result = json_member(t->text, "result");
	const char *error = json_member(t->text, "error");
	if (error != NULL) {
		json_text(error, t->error, sizeof t->error);
		return -(int)json_number(json_member(t->text, "errno"));
	}
	return json_number(json_member(t->text, "id")) == t->calls ? 0 : fail(t, EPROTO, "id of an answer");
}
