/* SPDX-License-Identifier: Apache-2.0 */
#include "op.h"
#include "session.h"

enum { LOOKS = 256 }; /* that find nothing, in a row, between looks at the conversation */

/* The conversation brings the numbers of peers, and the end of the daemon. */
static size_t converse(struct domain *d)
{
	size_t n = 0;

	while (!d->g.talk.lost && talk_step(&d->g.talk) > 0)
		n++;
	if (d->g.talk.lost)
		domain_died(d);
	return n;
}

static void retry(struct domain *d)
{
	defer_start(d);
	if (d->g.note_count > 0)
		guest_tell(&d->g);
	if (d->crowded) {
		d->crowded = false; /* before looking: what finds no room sets it again */
		for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
			peers_retry(ep);
		guest_show(&d->g);
	}
	if (d->streams != NULL)
		stream_feed(d);
}

static size_t look(struct domain *d, bool listen)
{
	size_t n;

	if (d->dead)
		return 0;
	n = op_completions(d) + inbox_arrivals(d);
	if (listen || d->g.talk.under_way != NULL)
		n += converse(d);
	if (!d->dead)
		retry(d); /* last, since all of these may have made work for it */
	return n;
}

bool progress_due(const struct domain *d)
{
	return !d->dead && (d->g.note_count > 0 || d->crowded || d->in->room || d->due_room);
}

size_t progress_now(struct domain *d)
{
	return look(d, true);
}

size_t progress(struct domain *d)
{
	const size_t n = look(d, ++d->idle % LOOKS == 0);

	__atomic_store_n(&d->polled, d->polled + 1, __ATOMIC_RELAXED);
	if (n > 0)
		d->idle = 0;
	else
		neighbours_idle(&d->others);
	return n;
}
