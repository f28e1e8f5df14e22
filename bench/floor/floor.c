// SPDX-License-Identifier: Apache-2.0
/*
 * The floor: the least that a round trip between two user processes costs on this
 * machine, with AF_XDP and no protocol at all. An echo that polls, and a client
 * that keeps WINDOW frames in flight.
 *
 *	floor echo   IFNAME bare|footprint
 *	floor client IFNAME bare|footprint PEER-MAC WINDOW SIZE COUNTERS REPLY SECONDS WARMUP
 *
 * With a footprint, both sides have what any program has that does more than echo, and
 * still no protocol: see struct line.
 *
 * SIZE is the length of a request with its Ethernet header. COUNTERS is how many
 * counters the echo increments for a frame. The frame names each of them, and is
 * answered with their old values: this is the cost of an atomic without anything
 * around it. The report counts counters as operations if there are any, else frames.
 * REPLY is the length of the answer.
 */
#include <pthread.h>

#include "xsk.h"

#define WORDS 4096
#define STALL (20 * SECOND / 1000) /* time without an answer after which frames count as lost */
#define LIMIT (600 * SECOND)       /* time after which an echo ends by itself */

struct add {
	uint64_t word, value; /* value: the operand, then the old value */
};

struct frame {
	uint8_t destination[6], source[6];
	uint16_t type;
	uint16_t reply;    /* bytes of the answer */
	uint32_t counters; /* elements of add */
	uint32_t slot;     /* of the sender's window */
	uint32_t sequence;
	struct add add[];
} __attribute__((packed));

static uint64_t words[WORDS];
static struct xsk xsk;

/*
 * The footprint of xdpfab, as far as it can be had without a protocol: as many chunks in
 * turn, a descriptor that other threads share, a look at the flag that says whether a system
 * call is needed, and, before each such call, code and data that evict the kernel's.
 */
#define MANY_CHUNKS 2048u
#define SLEEPERS 4    /* threads */
#define CODE_KIB 16   /* straight on */
#define OWN_LINES 100 /* of data, of 64 bytes */

static struct line {
	uint64_t word;
	uint8_t rest[56];
} own[OWN_LINES];
static int footprint;

#ifdef __x86_64__
#define NOPS_OF_8_BYTES ".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0"
#else /* instructions of 4 bytes */
#define NOPS_OF_8_BYTES "nop\n nop"
#endif

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void choose(const char *kind)
{
	pthread_t thread;

	footprint = !strcmp(kind, "footprint");
	if (!footprint && strcmp(kind, "bare"))
		die("kind %s: want bare or footprint", kind);
	xsk.chunks = footprint ? MANY_CHUNKS : CHUNKS;
	xsk.need_wakeup = footprint;
	for (int i = 0; footprint && i < SLEEPERS; i++)
		if (pthread_create(&thread, NULL, sleep_on, NULL))
			die("no thread");
}

static void kick(void)
{
	if (footprint) {
		for (int i = 0; i < OWN_LINES; i++)
			(*(volatile uint64_t *)&own[i].word)++;
		__asm__ volatile(".rept 128 * %c0\n" NOPS_OF_8_BYTES "\n.endr" : : "i"(CODE_KIB));
	}
	xsk_kick(&xsk);
}

/* Turns a request into its answer, in place; returns its length. */
static uint32_t answer(struct frame *f, uint32_t length)
{
	uint32_t most = (length - sizeof(*f)) / sizeof(struct add);
	uint32_t n = f->counters < most ? f->counters : most;

	for (uint32_t i = 0; i < n; i++)
		f->add[i].value = __atomic_fetch_add(&words[f->add[i].word % WORDS], f->add[i].value, __ATOMIC_SEQ_CST);
	memcpy(f->destination, f->source, 6);
	memcpy(f->source, xsk.mac, 6);
	return f->reply >= 60 && f->reply <= length ? f->reply : length;
}

/* A chunk goes round: fill, rx, tx, completion, fill. */
static void echo(void)
{
	uint64_t end = now_ns() + LIMIT;

	for (uint32_t i = 0; i < xsk.chunks; i++)
		AT(&xsk.fill, uint64_t, xsk.fill.local++) = (uint64_t)i * CHUNK;
	ring_publish(&xsk.fill);
	puts("ready");
	for (uint64_t idle = 0; !stopped; ) {
		uint32_t n = ring_ready(&xsk.rx);

		if (!n) {
			if (!(++idle & 0xfffff) && now_ns() > end)
				die("nobody stopped the echo");
			continue;
		}
		n = n > 32 ? 32 : n; /* one sendto takes no more */
		for (uint32_t i = 0; i < n; i++) {
			struct xdp_desc d = AT(&xsk.rx, struct xdp_desc, xsk.rx.local + i);

			d.len = answer((void *)(xsk.umem + d.addr), d.len);
			AT(&xsk.tx, struct xdp_desc, xsk.tx.local++) = d;
		}
		ring_release(&xsk.rx, n);
		kick();
		n = ring_ready(&xsk.completion);
		for (uint32_t i = 0; i < n; i++)
			AT(&xsk.fill, uint64_t, xsk.fill.local++) =
				AT(&xsk.completion, uint64_t, xsk.completion.local + i) / CHUNK * CHUNK;
		ring_release(&xsk.completion, n);
		ring_publish(&xsk.fill);
	}
}

static struct {
	uint8_t peer[6];
	uint32_t window, size, counters, reply;
	uint64_t duration, warmup; /* ns */
} config;

static struct {
	uint64_t *sent;      /* when, by slot; 0: free */
	uint32_t *sequence;  /* expected, by slot */
	uint32_t *free_slot; /* a stack */
	uint32_t num_free;
	uint32_t next_sequence;
	uint64_t next_word;
	uint64_t lost, answered;
} state;

/* Slot i has the chunk i behind those to receive into for its request. */
static void request(uint32_t slot, uint64_t now)
{
	uint64_t address = (uint64_t)(xsk.chunks + slot) * CHUNK;
	struct frame *f = (void *)(xsk.umem + address);

	f->slot = slot;
	f->sequence = state.sequence[slot] = state.next_sequence++;
	for (uint32_t i = 0; i < config.counters; i++)
		f->add[i] = (struct add){.word = state.next_word++ % WORDS, .value = 1};
	state.sent[slot] = now;
	AT(&xsk.tx, struct xdp_desc, xsk.tx.local++) = (struct xdp_desc){.addr = address, .len = config.size};
}

static void prepare(void)
{
	for (uint32_t i = 0; i < config.window; i++) {
		struct frame *f = (void *)(xsk.umem + (uint64_t)(xsk.chunks + i) * CHUNK);

		memcpy(f->destination, config.peer, 6);
		memcpy(f->source, xsk.mac, 6);
		f->type = htons(ETHERTYPE);
		f->counters = config.counters;
		f->reply = config.reply;
		state.free_slot[state.num_free++] = i;
	}
	for (uint32_t i = 0; i < xsk.chunks; i++)
		AT(&xsk.fill, uint64_t, xsk.fill.local++) = (uint64_t)i * CHUNK;
	ring_publish(&xsk.fill);
}

/* Takes the answers that have arrived. */
static uint32_t collect(struct histogram *h, uint64_t now)
{
	uint32_t n = ring_ready(&xsk.rx);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t address = AT(&xsk.rx, struct xdp_desc, xsk.rx.local + i).addr;
		struct frame *f = (void *)(xsk.umem + address);
		uint32_t slot = f->slot;

		AT(&xsk.fill, uint64_t, xsk.fill.local++) = address / CHUNK * CHUNK;
		if (slot >= config.window || !state.sent[slot] || state.sequence[slot] != f->sequence)
			continue; /* of a request that was given up */
		histogram_add(h, now - state.sent[slot]);
		state.sent[slot] = 0;
		state.free_slot[state.num_free++] = slot;
		state.answered++;
	}
	ring_release(&xsk.rx, n);
	ring_publish(&xsk.fill);
	ring_release(&xsk.completion, ring_ready(&xsk.completion));
	return n;
}

static void give_up(void)
{
	for (uint32_t slot = 0; slot < config.window; slot++) {
		if (!state.sent[slot])
			continue;
		state.sent[slot] = 0;
		state.free_slot[state.num_free++] = slot;
		state.lost++;
	}
}

/* How often the ring is found empty between two looks at the clock; xdpfab's side
 * has the same. A round trip takes one look, at its end, which is the beginning of
 * the next one. */
#define LOOK_EVERY 64

/* Runs until the time is over, and no frame is under way. */
static void run(struct histogram *h, uint64_t duration)
{
	uint64_t now = now_ns(), end = now + duration, heard = now;
	unsigned empty = 0;

	while ((now < end || state.num_free < config.window) && !stopped) {
		if (now < end && state.num_free) {
			while (state.num_free)
				request(state.free_slot[--state.num_free], now);
			kick();
		}
		if (!ring_ready(&xsk.rx)) {
			if (++empty % LOOK_EVERY)
				continue;
			now = now_ns();
			if (now - heard > STALL) {
				give_up();
				heard = now;
			}
			continue;
		}
		now = heard = now_ns();
		collect(h, now);
	}
}

static void client(void)
{
	static struct measurement m;
	uint64_t before, lost;

	state.sent = calloc(config.window, sizeof(*state.sent));
	state.sequence = calloc(config.window, sizeof(*state.sequence));
	state.free_slot = calloc(config.window, sizeof(*state.free_slot));
	if (!state.sent || !state.sequence || !state.free_slot)
		die("no memory");
	prepare();
	histogram_reset(&m.latency);
	run(&m.latency, config.warmup);
	before = state.answered, lost = state.lost;
	measure_begin(&m);
	run(&m.latency, config.duration);
	if (state.answered == before)
		die("no answer from the echo");
	measure_end(&m, (state.answered - before) * (config.counters ? config.counters : 1), state.lost - lost);
}

static uint32_t number(const char *text, uint32_t low, uint32_t high, const char *what)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || end == text || v < low || v > high)
		die("%s %s: want %u to %u", what, text, low, high);
	return v;
}

static void configure(char **argument)
{
	uint8_t *p = config.peer;

	if (sscanf(argument[0], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", p, p + 1, p + 2, p + 3, p + 4, p + 5) != 6)
		die("peer %s: want a MAC address", argument[0]);
	config.window = number(argument[1], 1, 32, "window");
	config.size = number(argument[2], 60, CHUNK - 256, "size");
	config.counters = number(argument[3], 0, (config.size - sizeof(struct frame)) / sizeof(struct add), "counters");
	config.reply = number(argument[4], 60, config.size, "reply");
	config.duration = (uint64_t)(atof(argument[5]) * SECOND);
	config.warmup = (uint64_t)(atof(argument[6]) * SECOND);
	if (!config.duration || config.duration > LIMIT || config.warmup > LIMIT)
		die("seconds %s after a warm-up of %s: want more than 0, up to 600", argument[5], argument[6]);
}

int main(int count, char **argument)
{
	if (count == 4 && !strcmp(argument[1], "echo")) {
		choose(argument[3]);
		lines();
		stop_on_signals();
		xsk_open(&xsk, argument[2]);
		echo();
	} else if (count == 11 && !strcmp(argument[1], "client")) {
		choose(argument[3]);
		configure(argument + 4);
		lines();
		stop_on_signals();
		xsk_open(&xsk, argument[2]);
		client();
	} else {
		die("usage: floor echo IFNAME bare|footprint\n"
		    "       floor client IFNAME bare|footprint PEER-MAC WINDOW SIZE COUNTERS REPLY SECONDS WARMUP");
	}
	return 0;
}
