/* SPDX-License-Identifier: Apache-2.0
 *
 * When a thread that finds nothing to do gives its CPU away. The work that it waits for may
 * need that CPU: where daemons' pollers and programs outnumber the CPUs, a thread that
 * spins keeps the others waiting for a time slice. How long a yield takes tells who else
 * wants the CPU. The daemon's poller does the same (internal/progress).
 */
#ifndef PROVIDER_NEIGHBOURS_H
#define PROVIDER_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

struct neighbours {
	uint32_t rarely; /* the most looks between yields while nobody else wants the CPU; 0: no yields */
	uint32_t pause;	 /* looks that find nothing between two yields; atomic */
	uint32_t left;	 /* of these, until the next one; atomic */
	bool due;	 /* one yields as soon as the lock is released, which guards this */
};

/* Called after each look that found nothing, with the lock. */
void neighbours_idle(struct neighbours *n);

/* Gives the CPU away for a moment; called without the lock, which other threads want meanwhile. */
void neighbours_yield(struct neighbours *n);

#endif
