/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for what a queue or a counter gets. Whoever makes progress may be another thread,
 * which takes the bell's ring: so it signals the waiters of what it fills.
 */
#ifndef XDPFAB_WAIT_H
#define XDPFAB_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_eq.h>

struct domain;

struct waiter {
	enum fi_wait_obj obj;
	int signal; /* eventfd */
	int epoll;  /* what FI_GETWAIT gives: bell, conversation and signal; or -1 */
	bool armed; /* somebody waits */
};

/* Returns 0 or a negative error. FI_WAIT_NONE needs nothing; wait sets and condition
 * variables are not implemented. */
int wait_open(struct waiter *w, struct domain *d, enum fi_wait_obj obj);
void wait_close(struct waiter *w);

/* Wakes those that wait. The domain's lock is held. */
void wait_tell(struct waiter *w);

/* Prepares a wait outside of the provider, after which the descriptor tells of all that
 * comes. Returns false if something has come. The domain's lock is held. */
bool wait_arm(struct waiter *w, struct domain *d);

/* Waits until something may have come, or a time in ms is over; -1 is for ever. The domain's
 * lock is held, but not during the wait. */
void wait_some(struct waiter *w, struct domain *d, int limit);

/* The answer to FI_GETWAIT and FI_GETWAITOBJ. */
int wait_control(struct waiter *w, int command, void *arg);

/* A time limit, ms, becomes a deadline; what is left of that, -1 for ever. */
int64_t deadline_of(int limit);
int left_of(int64_t deadline);

#endif
