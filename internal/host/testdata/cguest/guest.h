/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest in C that needs nothing but libc: the conversation with the daemon
 * (docs/attach-protocol.md) and the rings (ring.h). It is of one thread. Functions that can
 * fail return 0 or an errno with a minus sign, and leave a sentence in talk.error.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

/* json.c: what is in a JSON text that ends with a 0. Values are places in the text. */
const char *json_member(const char *object, const char *name);  /* NULL without such a member */
bool json_lists(const char *array, const char *text);            /* is the text an element? */
uint64_t json_number(const char *value);                         /* 0 for none */
void json_text(const char *value, char *to, size_t room);        /* empty for none */
int json_quote(const char *text, char *to, size_t room);         /* with quotes; -E2BIG without room */

/* talk.c: the conversation. */
enum { TALK_TEXT = 65536, TALK_FILES = 4 };

struct talk {
	int fd;
	uint64_t calls;
	const char *result; /* of the last call, until the next one */
	int files[TALK_FILES], file_count; /* that came with it, the caller's */
	char error[512];
	char text[TALK_TEXT + 1];
};

int talk_connect(struct talk *t, const char *socket);
/* Has the daemon do something, and waits for the answer. file is -1 for none. */
int talk_call(struct talk *t, const char *verb, int file, const char *arguments, ...)
	__attribute__((format(printf, 4, 5)));

/* rings.c: the segment. */
struct guest {
	struct talk talk;
	int doorbell;
	struct xdpfab_header *header;
	struct xdpfab_entry *entries;
	struct xdpfab_completion *completions;
	uint8_t *arena, *arrivals;
	uint32_t size;           /* of the rings, entries */
	uint32_t arrivals_size;  /* bytes */
	uint64_t posted, seen, read;
};

int guest_attach(struct guest *g, const char *socket);
/* The next entry to fill in, all 0; NULL if there is no room. guest_post posts it. */
struct xdpfab_entry *guest_entry(struct guest *g);
void guest_post(struct guest *g);
/* Take the next completion, or arrival with at most `room` of its bytes; false for none. */
bool guest_completion(struct guest *g, struct xdpfab_completion *c);
bool guest_arrival(struct guest *g, struct xdpfab_arrival *a, void *bytes, size_t room);
/* Waits until there may be either; false after a minute. */
bool guest_sleep(struct guest *g);

#endif
