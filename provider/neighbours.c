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
	int64_t before;

	if (n->rarely == 0)
		return;
	if (n->left > 0) {
		n->left--;
		return;
	}
	before = now();
	sched_yield();
	if (now() - before >= NOBODY)
		n->pause = 0;
	else
		n->pause = n->pause < n->rarely / 2 ? 2 * n->pause + 1 : n->rarely;
	n->left = n->pause;
}
