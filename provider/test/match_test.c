/* SPDX-License-Identifier: Apache-2.0
 *
 * An interpreter: it reads what is done with queues, one line each, does it, and prints
 * what came of it. The caller compares that with the words of Go's package matching about
 * the same.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "../match.h"
#include "check.h"

enum { INFLOWS = 3, RECEIVES = 4096 };

/* A receive of a script. It has memory of its own, so that a byte too many is noticed. */
struct posted {
	struct match_receive r;
	struct iovec buffers[MATCH_BUFFERS + 1];
};

static struct {
	struct match *q;
	void *memory;
	struct match_inflow *in[INFLOWS];
	struct match_message m[INFLOWS]; /* in progress */
	uint64_t at[INFLOWS];            /* bytes of it that were put */
	unsigned salt[INFLOWS];
	struct posted posted[RECEIVES];
	uint64_t places, delivered;
	unsigned rooms;
	char *told; /* deliveries of this line */
	size_t told_n, told_size;
} s;

static void *pointer(uint64_t n)
{
	return (void *)(uintptr_t)n;
}

static uint64_t number(void)
{
	uint64_t n;

	CHECK(scanf("%" SCNu64, &n) == 1, "the script is cut off");
	return n;
}

/* fresh returns n bytes in memory that has no others. */
static uint8_t *fresh(size_t n)
{
	void *p;

	CHECK(posix_memalign(&p, 16, n) == 0, "no memory");
	memset(p, 0, n);
	return p;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
	return h;
}

static const uint64_t hash_begin = 0xcbf29ce484222325;

static void tell(const char *format, ...)
{
	va_list args;

	if (s.told_size - s.told_n < 1000) {
		s.told = realloc(s.told, s.told_size += 4000);
		CHECK(s.told, "no memory");
	}
	va_start(args, format);
	s.told_n += (size_t)vsnprintf(s.told + s.told_n, s.told_size - s.told_n, format, args);
	va_end(args);
}

static void tell_done(const struct match_done *d)
{
	const uint64_t note = (uintptr_t)d->note;
	uint64_t h = hash_begin;

	for (size_t i = 0; note && i < s.posted[note].r.count; i++)
		h = hash(h, s.posted[note].buffers[i].iov_base, s.posted[note].buffers[i].iov_len);
	tell(" done %" PRIu64 " %" PRIu64 " %" PRIu64 " reason %d %" PRIu64 " of %" PRIu64 " tag %" PRIx64 " data %" PRIx64,
	     (uint64_t)(uintptr_t)d->context, note, (uint64_t)(uintptr_t)d->to, d->reason, d->received, d->length, d->tag,
	     d->data);
	tell(" flags %d%d%d%d%d from %" PRIu64 "/%u buffer %d %" PRIu64 " hash %" PRIx64, d->tagged, d->atomic, d->has_data,
	     d->released, d->silent, d->from.network[0] + d->from.network[1] + d->from.network[2], d->from.endpoint,
	     d->buffer != NULL, d->offset, h);
}

static bool take(void *sink)
{
	CHECK(sink == &s, "sink");
	if (!s.places)
		return false;
	s.places--;
	return true;
}

static void put_back(void *sink)
{
	CHECK(sink == &s, "sink");
	s.places++;
}

static void deliver(void *sink, const struct match_done *d)
{
	CHECK(sink == &s, "sink");
	s.delivered++;
	tell_done(d);
}

static void room(void *sink)
{
	CHECK(sink == &s, "sink");
	s.rooms++;
}

static void open_inflow(size_t i)
{
	struct match_source from = {{0}, 0};

	from.network[i] = i + 1;
	s.in[i] = match_open(s.q, fresh(match_inflow_bytes()), &from, pointer(i + 1));
}

static void release_receives(void)
{
	for (size_t i = 0; i < RECEIVES; i++) {
		for (size_t j = 0; j < s.posted[i].r.count; j++)
			free(s.posted[i].buffers[j].iov_base);
		s.posted[i].r.count = 0;
	}
}

static void begin(void)
{
	struct match_config c = {.sink = &s, .take = take, .put_back = put_back, .deliver = deliver, .room = room};

	c.receives = (uint32_t)number();
	c.unexpected = (uint32_t)number();
	c.memory = number();
	s.places = number();
	s.rooms = 0;
	s.delivered = 0;
	s.memory = fresh(match_bytes(&c));
	memset(s.memory, 0x55, match_bytes(&c));
	s.q = match_init(&c, s.memory);
	for (size_t i = 0; i < INFLOWS; i++)
		open_inflow(i);
}

static void end(void)
{
	match_close(s.q);
	for (size_t i = 0; i < INFLOWS; i++) {
		match_end(s.in[i]);
		free(s.in[i]);
	}
	free(s.memory);
	release_receives();
}

static struct match_pattern pattern(void)
{
	struct match_pattern p = {.tagged = number()};
	uint64_t node;

	p.tag = number();
	p.ignore = number();
	p.any_source = number();
	node = number();
	p.from.network[node] = node + 1;
	p.from.endpoint = (uint16_t)number();
	return p;
}

/* receive reads a receive; its number comes first. */
static const struct match_receive *receive(void)
{
	const uint64_t id = number();
	struct posted *p = &s.posted[id];

	CHECK(id < RECEIVES && p->r.count == 0, "receive %" PRIu64, id);
	p->r = (struct match_receive){.note = pointer(id), .context = pointer(number())};
	p->r.pattern = pattern();
	p->r.multi = number();
	p->r.min_free = number();
	p->r.claim = number();
	p->r.silent = number();
	p->r.count = number();
	p->r.buffers = p->buffers;
	for (size_t i = 0; i < p->r.count; i++) {
		p->buffers[i].iov_len = number();
		p->buffers[i].iov_base = fresh(p->buffers[i].iov_len);
	}
	return &p->r;
}

/* bytes returns a piece of the message in progress of an inflow. */
static uint8_t *bytes(size_t i, uint64_t n)
{
	uint8_t *b = fresh(n);

	for (uint64_t j = 0, at = s.at[i]; j < n; j++, at++)
		b[j] = (uint8_t)(at * 7 + (at >> 8)) ^ (uint8_t)s.salt[i];
	s.at[i] += n;
	return b;
}

/* announce admits a message. */
static void announce(void)
{
	const size_t i = number();
	const bool leased = number();
	struct match_message *m = &s.m[i];

	*m = (struct match_message){.tagged = number()};
	m->tag = number();
	m->source = (uint16_t)number();
	m->must_match = number();
	m->has_data = number();
	m->data = number();
	m->length = number();
	s.salt[i] = (unsigned)number();
	s.at[i] = 0;
	m->form = (uint8_t)number();
	m->op = (uint8_t)number();
	m->datatype = (uint8_t)number();
	m->offset = number();
	if (leased)
		match_admit_leased(s.in[i], m);
	else
		tell(" admitted %d", match_admit(s.in[i], m));
	tell(" lacks %" PRIu64, match_lacks(s.in[i]));
}

static void put(void)
{
	const size_t i = number();
	const uint64_t n = number();
	uint8_t *b = bytes(i, n);

	match_put(s.in[i], b, n);
	free(b);
	tell(" lacks %" PRIu64, match_lacks(s.in[i]));
}

/* combine ends an atomic: its operands have n bytes, as its results. */
static void combine(void)
{
	const size_t i = number();
	const bool returns = number();
	const uint64_t n = s.m[i].length;
	uint8_t *operand = bytes(i, n), *compare = bytes(i, n), *values = fresh(n), *result = fresh(n);
	enum match_reason reason = 0, how;
	const bool into = match_probe(s.in[i], &reason, values);

	how = match_combine(s.in[i], operand, compare, n, returns ? result : NULL);
	tell(" into %d %d values %" PRIx64 " how %d result %" PRIx64, into, reason, hash(hash_begin, values, n), how,
	     hash(hash_begin, result, n));
	free(operand);
	free(compare);
	free(values);
	free(result);
}

static void peek(void)
{
	const struct match_pattern p = pattern();
	const enum match_found found = number();
	struct match_done d;

	tell(" found %d", match_peek(s.q, &p, found, pointer(number()), &d));
	tell_done(&d);
}

static void discard(void)
{
	struct match_done d;

	tell(" found %d", match_discard(s.q, pointer(number()), &d));
	tell_done(&d);
}

static void read_completions(void)
{
	const uint64_t n = number();

	CHECK(n <= s.delivered, "only %" PRIu64 " were delivered", s.delivered);
	s.delivered -= n;
	s.places += n;
	match_freed(s.q);
}

static void start(void)
{
	struct match_receive *r = &s.posted[number()].r;

	r->reserved = true;
	tell(" start %d", match_post(s.q, r));
}

static void give_up(void)
{
	match_cancel_reserved(s.q, &s.posted[number()].r);
}

static void reopen(void)
{
	const size_t i = number();

	match_end(s.in[i]);
	match_end(s.in[i]);
	free(s.in[i]);
	open_inflow(i);
}

static void lease(void)
{
	const struct match_room r = match_lease(s.q, number());

	tell(" leased %u %u", r.messages, r.bytes);
}

static void reclaim(void)
{
	struct match_room r;

	r.messages = (uint32_t)number();
	r.bytes = (uint32_t)number();
	match_reclaim(s.q, r);
}

static void step(char what)
{
	switch (what) {
	case 'P': tell(" post %d", match_post(s.q, receive())); break;
	case 'R': tell(" reserve %d", match_reserve(s.q, receive())); break;
	case 'S': start(); break;
	case 'U': match_unreserve(s.q); break;
	case 'G': give_up(); break;
	case 'A': announce(); break;
	case 'T': put(); break;
	case 'B': combine(); break;
	case 'D': match_drop(s.in[number()]); break;
	case 'E': reopen(); break;
	case 'K': peek(); break;
	case 'X': discard(); break;
	case 'C': tell(" cancel %d", match_cancel(s.q, pointer(number()))); break;
	case 'F': read_completions(); break;
	case 'L': lease(); break;
	case 'M': reclaim(); break;
	case 'Z': match_close(s.q); break;
	default: CHECK(false, "line of kind %c", what);
	}
}

int main(void)
{
	char what;

	while (scanf(" %c", &what) == 1) {
		struct match_usage u;

		if (what == 'Q') {
			if (s.q)
				end();
			begin();
		} else {
			step(what);
		}
		u = match_usage(s.q);
		printf("%c%.*s usage %u %u %u %u %u %u %" PRIu64 " %u/%u places %" PRIu64 " rooms %u\n", what, (int)s.told_n,
		       s.told ? s.told : "", u.posted, u.filling, u.held, u.claimed, u.places, u.inflows, u.memory,
		       u.leased.messages, u.leased.bytes, s.places, s.rooms);
		s.told_n = 0;
	}
	if (s.q)
		end();
	free(s.told);
	return 0;
}
