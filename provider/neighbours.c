/* SPDX-License-Identifier: Apache-2.0 */
#include "neighbours.h"

#include <sched.h>
#include <time.h>

enum { NOBODY = 1500 }; /* ns, more than a yield takes that nobody else wanted */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void neighbours_idle(struct neighbours *n)
{
	const uint32_t left = __atomic_load_n(&n->left, __ATOMIC_RELAXED);

	if (left > 0)
		__atomic_store_n(&n->left, left - 1, __ATOMIC_RELAXED);
	else
		n->due = n->rarely > 0;
}

void neighbours_yield(struct neighbours *n)
{
	const int64_t before = now();
	uint32_t pause = __atomic_load_n(&n->pause, __ATOMIC_RELAXED);

	sched_yield();
	if (now() - before >= NOBODY)
		pause = 0;
	else
		pause = pause < n->rarely / 2 ? 2 * pause + 1 : n->rarely;
	__atomic_store_n(&n->pause, pause, __ATOMIC_RELAXED);
	__atomic_store_n(&n->left, pause, __ATOMIC_RELAXED);
}
