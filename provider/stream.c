/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages and transfers that are longer than part_of go through a window of the arena, in two
 * halves: XDPFAB_FEED entries follow the operation's own entry, each with the next bytes,
 * and the completion of each frees its half. The window is the operation's until it
 * completes, so that operations behind it cannot take away what it needs to go on.
 */
#include <stdlib.h>

#include "op.h"

enum {
	LEAST_WINDOW = 8 << 10, /* bytes: for which a crowded arena has no more */
	EXTENTS = MOST_IOV * sizeof(struct xdpfab_extent),
};

bool stream_begin(struct domain *d, struct op *op, struct work *w)
{
	size_t n = arena_largest(&d->g.space) / 4;
	struct stream *s;

	if (n > 2 * PART)
		n = 2 * PART;
	while (!serve_take(d, n, &op->at)) {
		n /= 2;
		if (n < LEAST_WINDOW)
			return false;
	}
	op->len = (uint32_t)n;
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return false;
	s->writes = w->result_len == 0;
	s->iov_count = s->writes ? w->from_count : w->result_count;
	memcpy(s->iov, s->writes ? w->from : w->result, s->iov_count * sizeof *s->iov);
	s->place_count = w->place_count;
	memcpy(s->places, w->places, sizeof s->places);
	s->offset = w->e.offset;
	s->transfer = w->e.verb == XDPFAB_READ || w->e.verb == XDPFAB_WRITE;
	s->len = w->operand_len + w->compare_len + w->result_len;
	if (s->len > UINT32_MAX) {
		w->e.count = 0;
		memcpy(w->e.operands, &s->len, sizeof s->len);
	}
	s->half = op->len / 2;
	op->stream = s;
	op->result_len = 0;
	s->next = d->streams;
	s->op = op;
	d->streams = s;
	w->e.flags |= XDPFAB_STREAM;
	if (w->place_count > 0)
		w->e.flags |= XDPFAB_EXTENTS;
	return true;
}

void stream_end(struct domain *d, struct op *op)
{
	struct stream *s = op->stream;

	for (struct stream **at = &d->streams; *at != NULL; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			break;
		}
	}
	for (int i = 0; i < 2; i++)
		if (s->parts[i] != NULL)
			s->parts[i]->of = NULL;
	free(s);
	op->stream = NULL;
}

/* How many of n bytes from an offset on make a part, at most so many. A part of a transfer
 * ends where a word of memory ends, since words are not divided. */
static uint32_t whole(const struct stream *s, uint64_t offset, size_t n, uint32_t most)
{
	uint32_t beyond;

	if (n <= most)
		return (uint32_t)n;
	beyond = s->transfer ? (uint32_t)((offset + most) % 8) : 0;
	return most > beyond ? most - beyond : 0;
}

/* Writes the extents of the next part, and returns its bytes. The last one is as long as
 * what is left of it, so that the target checks that whole. */
static uint32_t list(struct stream *s, uint8_t *to, size_t *count)
{
	uint32_t bytes = 0, room = s->half - 8 - EXTENTS;

	for (*count = 0; s->place < s->place_count && bytes < room;) {
		const struct place *x = &s->places[s->place];
		uint32_t n;

		if (x->count <= s->within) {
			s->place++;
			s->within = 0;
			continue;
		}
		n = whole(s, x->offset + s->within, x->count - s->within, room - bytes);
		if (n == 0)
			break;
		extent_write(x, s->within, to + (*count)++ * sizeof(struct xdpfab_extent));
		bytes += n;
		s->within += n;
		if (s->within < x->count)
			break;
	}
	return bytes;
}

/* Fills a half and its entry with the next part. */
static void fill(struct domain *d, struct stream *s, uint32_t at, struct op *part, struct xdpfab_entry *e)
{
	struct xdpfab_places p = {.operand = at, .compare = at};
	uint8_t extents[EXTENTS];
	size_t count = 0;
	uint32_t operands;

	if (s->place_count > 0)
		e->count = list(s, extents, &count);
	else
		e->count = whole(s, s->offset + s->fed, s->len - s->fed, s->half - 8);
	operands = s->writes ? (e->count + 7) & ~7u : 0;
	if (s->writes) {
		iov_read(s->iov, s->iov_count, s->fed, d->g.data + at, e->count);
		p.compare = at + e->count;
	}
	memcpy(d->g.data + at + operands, extents, count * sizeof(struct xdpfab_extent));
	p.extents = at + operands;
	p.extent_count = (uint32_t)count;
	p.result = at + operands + count * sizeof(struct xdpfab_extent);
	part->result = (uint32_t)p.result;
	part->result_len = s->writes ? 0 : e->count;
	part->first = s->fed;
	s->fed += e->count;
	memcpy(e->operands, &p, sizeof p);
}

/* Posts the next part, and returns false if there is none, or no room for it. */
static bool feed(struct domain *d, struct stream *s)
{
	const uint8_t i = s->parts[0] == NULL ? 0 : 1;
	struct xdpfab_entry e = {.verb = XDPFAB_FEED, .flags = 0}, *to;
	struct op *part;

	if (!s->posted || s->ended || s->fed == s->len || s->parts[i] != NULL)
		return false;
	part = op_take(d);
	if (part == NULL)
		return false;
	to = guest_entry(&d->g);
	if (to == NULL) {
		op_free(d, part);
		d->crowded = true;
		return false;
	}
	part->of = s->op;
	part->part = true;
	part->half = i;
	s->parts[i] = part;
	e.cookie = (uint64_t)(part - d->ops);
	e.key = (uint64_t)(s->op - d->ops);
	fill(d, s, s->op->at + i * s->half, part, &e);
	*to = e;
	return true;
}

void stream_feed(struct domain *d)
{
	bool fed = false;

	for (struct stream *s = d->streams; s != NULL; s = s->next)
		while (feed(d, s))
			fed = true;
	if (fed)
		guest_show(&d->g);
}

void stream_part_done(struct domain *d, struct op *part, const struct xdpfab_completion *c)
{
	struct op *op = part->of;

	if (op != NULL) {
		struct stream *s = op->stream;

		s->parts[part->half] = NULL;
		if (c->outcome != XDPFAB_SUCCESS)
			s->ended = true;
		else if (!s->writes && !op->open && op->ep != NULL && c->length <= part->result_len)
			iov_write(s->iov, s->iov_count, part->first, d->g.data + part->result, c->length);
	}
	part->part = false;
	op_free(d, part);
}
