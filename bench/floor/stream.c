// SPDX-License-Identifier: Apache-2.0
/*
 * The floor of a stream: the most payload that frames carry one way between two user
 * processes on this machine, with AF_XDP and no protocol but credits, which keep
 * the sink from losing frames. The report says if any were lost all the same.
 *
 *	stream sink   IFNAME pass|copy
 *	stream source IFNAME PEER-MAC PAYLOAD pass|copy SECONDS WARMUP
 *
 * A frame has a header of HEADER bytes, Ethernet's among them, and PAYLOAD bytes. With
 * pass, the source sends its chunks as they are and the sink looks at headers alone:
 * what the kernel takes. With copy, the payload comes from the source's memory and goes
 * to the sink's, as that of a write has to. The report counts frames that the sink has.
 */
#include "xsk.h"

#define CREDIT 32                   /* frames for a credit */
/* Time without a credit after which frames are given up: longer than a busy machine
 * keeps the sink from running, as the sink has no chunks for more frames then. */
#define STALL SECOND
#define OVERTIME (5 * SECOND)       /* that a run may take for its first credit */
#define LIMIT (600 * SECOND)        /* time after which a sink ends by itself */
#define MEMORY (8u << 20)           /* bytes, of the source and of the sink */
#define PARTS 4u            /* chunks for a frame that takes several */
#define MOST_FRAME 9014             /* bytes, of an MTU of 9000 */

struct frame {
	uint8_t destination[6], source[6];
	uint16_t type;
	uint32_t next;     /* sequence number; of a credit: one more than the latest */
	uint32_t received; /* of a credit: frames so far */
	uint32_t length;   /* of the payload */
	uint8_t payload[];
} __attribute__((packed));

#define HEADER sizeof(struct frame)
#define CREDIT_FRAME 60 /* bytes */

static struct xsk xsk = {.chunks = CHUNKS};
static uint8_t memory[MEMORY];
static size_t place; /* in memory, of the next payload */
static int copies;

/* Where a payload of this length comes from or goes to. */
static uint8_t *next_place(uint32_t length)
{
	if (place + length > MEMORY)
		place = 0;
	place += length;
	return memory + place - length;
}

static uint32_t parts(void)
{
	return xsk.several ? PARTS : 1;
}

/* How many frames can be under way. */
static uint32_t frames(void)
{
	return xsk.chunks / parts();
}

/* The memory to send frame i from: that of the second half of the chunks. */
static struct frame *slot(uint32_t i)
{
	return (void *)(xsk.umem + (uint64_t)(xsk.chunks + i % frames() * parts()) * CHUNK);
}

static void queue(const struct frame *f, uint32_t length)
{
	struct xdp_desc d = {.addr = (const uint8_t *)f - xsk.umem};

	for (; length; length -= d.len, d.addr += CHUNK) {
		d.len = length < CHUNK ? length : CHUNK;
		d.options = d.len < length ? XDP_PKT_CONTD : 0;
		AT(&xsk.tx, struct xdp_desc, xsk.tx.local++) = d;
	}
}

/* Gives the first half of the chunks to the kernel, to receive into. */
static void fill(void)
{
	for (uint32_t i = 0; i < xsk.chunks; i++)
		AT(&xsk.fill, uint64_t, xsk.fill.local++) = (uint64_t)i * CHUNK;
	ring_publish(&xsk.fill);
}

static struct {
	uint8_t source[6]; /* its address, from its latest frame */
	uint32_t next, received, credited, credits;
} sink_state;

struct batch {
	struct frame *last;
	uint32_t frames, chunks;
};

/* Copies a part of the payload of a frame, if it lies within, and returns where the next
 * part goes. */
static uint8_t *store(uint8_t *to, const uint8_t *end, const void *from, uint32_t n)
{
	if (to + n > end)
		n = end - to;
	memcpy(to, from, n);
	return to + n;
}

/* Takes frames off the ring, at most so many. The kernel shows whole ones. */
static struct batch take(uint32_t ready, uint32_t most)
{
	struct batch b = {};
	uint8_t *to = NULL, *end = NULL;

	for (int first = 1; b.chunks < ready && !(first && b.frames == most); b.chunks++) {
		struct xdp_desc d = AT(&xsk.rx, struct xdp_desc, xsk.rx.local + b.chunks);

		if (first) {
			b.last = (void *)(xsk.umem + d.addr);
			b.frames++;
			if (copies && b.last->length <= MOST_FRAME - HEADER) {
				to = next_place(b.last->length);
				end = to + b.last->length;
				to = store(to, end, b.last->payload, d.len - HEADER);
			}
		} else if (copies) {
			to = store(to, end, xsk.umem + d.addr, d.len);
		}
		first = !(d.options & XDP_PKT_CONTD);
		AT(&xsk.fill, uint64_t, xsk.fill.local++) = d.addr / CHUNK * CHUNK;
	}
	return b;
}

/* Chunks of the second half take turns for credits: far fewer than there are chunks are
 * under way. */
static void give_credit(void)
{
	struct frame *f = slot(sink_state.credits++);

	memcpy(f->destination, sink_state.source, 6);
	memcpy(f->source, xsk.mac, 6);
	f->type = htons(ETHERTYPE);
	f->next = sink_state.next;
	f->received = sink_state.credited = sink_state.received;
	queue(f, CREDIT_FRAME);
	xsk_kick(&xsk);
	ring_release(&xsk.completion, ring_ready(&xsk.completion));
}

static void sink(void)
{
	uint64_t end = now_ns() + LIMIT;

	fill();
	puts("ready");
	for (uint64_t idle = 0; !stopped; ) {
		uint32_t n = ring_ready(&xsk.rx);

		if (!n) {
			if (!(++idle & 0xfffff) && now_ns() > end)
				die("nobody stopped the sink");
			continue;
		}
		struct batch b = take(n, CREDIT);
		sink_state.received += b.frames;
		sink_state.next = b.last->next + 1;
		memcpy(sink_state.source, b.last->source, 6);
		/* The chunks go back before the credit, which lets as many frames come. */
		ring_release(&xsk.rx, b.chunks);
		ring_publish(&xsk.fill);
		if (sink_state.received - sink_state.credited >= CREDIT)
			give_credit();
	}
}

static struct {
	uint8_t peer[6];
	uint32_t payload;
	uint64_t duration, warmup; /* ns */
} config;

static struct {
	uint32_t sent;              /* frames */
	uint32_t next;              /* those before it are with the sink, or were given up */
	uint32_t received, missing; /* by the latest credit */
} state;

/* There are as many chunks to send from as the sink has to receive into, and a chunk
 * is used again when the sink has what it held. */
static void prepare(void)
{
	for (uint32_t i = 0; i < frames(); i++) {
		struct frame *f = slot(i);

		memcpy(f->destination, config.peer, 6);
		memcpy(f->source, xsk.mac, 6);
		f->type = htons(ETHERTYPE);
		f->length = config.payload;
	}
	memset(memory, 1, sizeof(memory));
	fill();
}

static void send_burst(void)
{
	uint32_t room = frames() - (state.sent - state.next);

	for (uint32_t n = room < CREDIT ? room : CREDIT; n; n--) {
		struct frame *f = slot(state.sent);

		f->next = state.sent++;
		if (copies)
			memcpy(f->payload, next_place(config.payload), config.payload);
		queue(f, HEADER + config.payload);
	}
	xsk_kick(&xsk);
	ring_release(&xsk.completion, ring_ready(&xsk.completion));
}

static void take_credits(uint32_t n)
{
	struct batch b = take(n, n);
	struct frame *f = b.last;

	state.received = f->received;
	state.missing = f->next - f->received;
	if ((int32_t)(f->next - state.next) > 0) /* else of frames that were given up */
		state.next = f->next;
	ring_release(&xsk.rx, b.chunks);
	ring_publish(&xsk.fill);
}

/* Runs until the time is over and a credit has come. */
static void run(uint64_t duration)
{
	uint64_t now = now_ns(), end = now + duration, heard = now;
	uint32_t before = state.received;

	while ((now < end || state.received == before) && !stopped) {
		uint32_t n = ring_ready(&xsk.rx);

		now = now_ns();
		if (n) {
			take_credits(n);
			heard = now;
		}
		if (state.sent - state.next < frames())
			send_burst();
		else if (now - heard > STALL) {
			state.next = state.sent;
			heard = now;
		}
		if (now > end + OVERTIME)
			die("no credit from the sink");
	}
}

static void source(void)
{
	static struct measurement m;
	uint32_t received, missing;

	prepare();
	run(config.warmup);
	received = state.received, missing = state.missing;
	measure_begin(&m);
	run(config.duration);
	measure_end(&m, state.received - received, state.missing - missing);
}

static void configure(char **argument)
{
	uint8_t *p = config.peer;
	int payload = atoi(argument[1]), most = MOST_FRAME - HEADER;
	double seconds = atof(argument[3]), warmup = atof(argument[4]);

	if (sscanf(argument[0], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", p, p + 1, p + 2, p + 3, p + 4, p + 5) != 6)
		die("peer %s: want a MAC address", argument[0]);
	if (payload < 64 || payload > most)
		die("payload %s: want 64 to %d bytes", argument[1], most);
	config.payload = payload;
	if (seconds <= 0 || seconds > 600 || warmup <= 0 || warmup > 600)
		die("%s seconds after a warm-up of %s: want more than 0, up to 600", argument[3], argument[4]);
	config.duration = (uint64_t)(seconds * SECOND);
	config.warmup = (uint64_t)(warmup * SECOND);
}

static void choose(const char *way)
{
	copies = !strcmp(way, "copy");
	if (!copies && strcmp(way, "pass"))
		die("way %s: want pass or copy", way);
}

int main(int count, char **argument)
{
	lines();
	stop_on_signals();
	if (count == 4 && !strcmp(argument[1], "sink")) {
		choose(argument[3]);
		memset(memory, 2, sizeof(memory)); /* so that each page is there */
		xsk_open(&xsk, argument[2]);
		sink();
	} else if (count == 8 && !strcmp(argument[1], "source")) {
		configure(argument + 3);
		choose(argument[5]);
		xsk_open(&xsk, argument[2]);
		source();
	} else {
		die("usage: stream sink   IFNAME pass|copy\n"
		    "       stream source IFNAME PEER-MAC PAYLOAD pass|copy SECONDS WARMUP");
	}
	return 0;
}
