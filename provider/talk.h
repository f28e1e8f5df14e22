/* SPDX-License-Identifier: Apache-2.0
 *
 * The conversation with a daemon: calls and answers, JSON texts behind their lengths, over
 * a socket. It belongs to whoever holds the domain's lock.
 */
#ifndef XDPFAB_TALK_H
#define XDPFAB_TALK_H

#include "json.h"

/* An answer. A text of an error is for people. The file descriptor, or -1, is the taker's. */
struct reply {
	struct json result;
	int error; /* positive, of fi_errno(3); 0 for success */
	char text[512];
	int fd;
};

/* The error of an answer, or of one in a list, and its text; 0 for success. */
int reply_error(struct json answer, char *text, size_t room);

/* A call that is under way. The caller has the memory until done is called, which may make
 * further calls. */
struct call {
	void (*done)(struct call *call, const struct reply *reply);
	uint64_t id;
	struct call *next;
};

struct talk {
	int fd;
	uint64_t last; /* identifier of a call */
	struct call *under_way;
	char *in; /* room for a text and its length */
	size_t has;
	int came; /* a file descriptor, or -1 */
	bool upgraded; /* the daemon has agreed to converse; calls wait for that */
	char *out;
	size_t out_len, out_room;
	bool lost;
	int error;     /* of the loss, 0 is FI_ENETDOWN */
	char why[512]; /* what the daemon has said of that */
};

/* Connects to a control socket, and waits for nothing. Returns 0 or a negative error of
 * fi_errno(3), with its text in t->why: then there is nothing to close. */
int talk_open(struct talk *t, const char *path);
void talk_close(struct talk *t);

/* Begins a call; arguments are JSON. A file descriptor that goes along
 * stays the caller's, -1 is none. Without a connection done is called at once. */
void talk_begin(struct talk *t, struct call *call, const char *verb, const char *arguments, int fd);

/* Takes an answer if one has come, and sends what the socket did not take before. Returns
 * how many calls have been answered: if the talk is lost, all are, with its error. */
int talk_step(struct talk *t);

/* What to poll its socket for before the next step. */
short talk_events(const struct talk *t);

/* Makes a call and waits for its answer for a time, ms. Others are answered meanwhile.
 * Returns 0 or the negative error; the reply's result is valid until the talk's next call
 * or step. */
int talk_call(struct talk *t, const char *verb, const char *arguments, int fd, int limit, struct reply *reply);

#endif
