/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon offers to a program: its interface, addresses and limits.
 */
#ifndef XDPFAB_OFFER_H
#define XDPFAB_OFFER_H

#include <netinet/in.h>

#include "talk.h"

enum {
	MOST_NETWORKS = 16,
	SOCKET_PATH = 108,
	/* For all daemons to answer. One of a crowded node waits for its CPU, which takes a fraction of
	 * a second for each thread that wants it; one that is stopped never answers, and all the
	 * programs of the node wait for it whenever they call fi_getinfo. */
	OFFER_MS = 5000,
};

/* An address of the interface, and the length of its network's prefix. */
struct network {
	sa_family_t family;
	uint8_t addr[16]; /* the first 4 for AF_INET */
	unsigned prefix;
};

struct offer {
	char path[SOCKET_PATH]; /* of the control socket */
	char name[64];		/* of the interface */
	uint8_t mac[6];
	uint64_t mtu;
	struct network networks[MOST_NETWORKS];
	size_t network_count;
	uint64_t entries, arena, arrivals; /* the most that a program may have */
	uint64_t endpoints, peers;	   /* likewise */
	bool attended; /* it hands over operations on memory that it has not mapped */
	bool longer;   /* it takes messages and transfers of any length */
};

/* Whether a list of features has one. */
bool offer_has(struct json features, const char *name);

/* Asks the daemon of a conversation what it offers. Returns 0 or a negative error. */
int offer_ask(struct talk *t, const char *path, int limit, struct offer *o);

/* Asks each daemon that this program may use: all at a time, and none for longer than OFFER_MS.
 * What does not answer is left out, and the log names it. With the name of an interface the
 * offer of that one is enough. The offers are the caller's to free. Returns how many there are. */
size_t offer_all(const char *name, struct offer **offers);

/* The same of the daemons with these control sockets. */
size_t offers_of(char *const *paths, size_t count, const char *name, struct offer **offers);

#endif
